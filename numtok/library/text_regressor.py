"""``numtok.TextRegressor``: a scikit-learn regressor that predicts a number from a text.

The parameters match ``numtok encode`` and ``numtok train``: with ``--seed`` as ``random_state``,
training gives the same weights. scikit-learn is an optional dependency.
"""

import warnings
from collections.abc import Callable
from itertools import count
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import ArrayLike, NDArray

# Imported first: its error says how to install scikit-learn.
from numtok.sklearn import (  # isort: skip
    POINTS,
    DistributionRegressor,
    named_as_here,
    restored_generator,
    seed_of,
)
from sklearn.utils import check_array, check_consistent_length, check_scalar
from sklearn.utils.validation import check_is_fitted, column_or_1d

from numtok.data.reading.split_rule import CALIBRATION
from numtok.data.records.reader import records_of
from numtok.data.tables.frames import write_frame
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.splits import read_split, splits
from numtok.errors import unknown
from numtok.evaluation.conformal import Forecasts, calibrate, least
from numtok.evaluation.predict import AUTOREGRESSIVE, PARALLEL, Options, Predictor
from numtok.evaluation.readings import read_numbers
from numtok.evaluation.record_rows import record_queries
from numtok.evaluation.text_rows import TextPredictor
from numtok.library.arguments import settings_of
from numtok.library.frames import named
from numtok.library.prediction import PredictedNumbers
from numtok.library.text_input import TEXT, TextInput
from numtok.reports import QUANTILES
from numtok.settings.encode import Config as EncodeConfig
from numtok.settings.train import Config as TrainConfig
from numtok.stages import encode, train
from numtok.store.store import Store
from numtok.sweeps.race.candidates import objective_for
from numtok.training.device import device_of
from numtok.training.model_files import ModelInMemory, read_model

_AT_ONCE = 1024  # rows whose distributions are in memory
_BATCH = 256  # rows per forward pass
_STRATUM = "y"  # of all rows, in calibration
_NO_DISTRIBUTION = (
    "the model writes numbers token by token, so it predicts no distribution. Use point=None, or "
    "another scheme or head, such as head='mdn:5'"
)


class TextRegressor(DistributionRegressor):
    """scikit-learn regressor for texts: a language model that predicts a distribution for the
    number after each text.

    X is a sequence of texts (list, array or column), or a data frame (pandas, polars, pyarrow) or
    2-D array. Rows of the latter become texts with one line ``name: value`` per column, as with
    ``numtok encode --target``. Missing values have no line. y is one finite number per row.

    Parameters
    ----------
    scheme : str
        Number scheme, such as ``xval``, ``p1000`` or ``fone``.
    head : str, optional
        Output head, such as ``mdn:5`` or ``riemann:256``. Default: depends on the scheme.
    preset : str
        Model, such as ``nano``, ``small`` or ``hf:FOLDER``, with settings: ``nano,layers=2``. Rows
        that are longer than those in fit may need a ``context`` (``nano,context=256`` tokens).
    normalize : str, optional
        Normalizer for numbers, such as ``signed-log``. Default: depends on the scheme.
    text_tokenizer : str, optional
        Tokenizer for the text between numbers, such as ``bpe:1000``. Default: ``words``.
    embedder : str, optional
        Number embedder, such as ``fourier``. Default: depends on the scheme.
    objective : str, optional
        Training objective. Default: ``mlm:targets``, or ``ar`` for schemes whose numbers vary in
        length, such as ``digits``.
    steps : int
        Number of training steps.
    batch : int
        Rows per step.
    learning_rate : float, optional
        Peak learning rate. Default: depends on the preset.
    validation : float
        Fraction of the rows held out, for the validation loss and the calibration of the head.
    calibration : float
        Fraction of the rows held out to calibrate :meth:`predict_interval`, and for nothing else.
        If it is 0, intervals are not available.
    point : {'median', 'mean', 'mode'}, optional
        Statistic of the distribution that :meth:`predict` returns. Default: the median; for heads
        that predict tokens or digits, the number that they write.
    random_state : int, RandomState or None
        It determines the initial weights, the held-out rows and the order of the training rows.
    device : str
        ``auto`` (a GPU if available), ``cpu`` or ``cuda``, for fitting and predicting.

    Attributes
    ----------
    fitted_ : ModelInMemory
        The trained model and its codec.
    n_features_in_ : int
        Number of columns; 1 for texts.
    feature_names_in_ : array of str
        Names of the columns (data frames only).

    Raises
    ------
    ValueError
        If a parameter or the data are invalid.
    TrainingFailed
        If the loss is not finite or memory runs out.

    Examples
    --------
    >>> texts = [f"a room of {a} m by {b} m" for a in range(2, 12) for b in range(2, 12)]
    >>> areas = [a * b for a in range(2, 12) for b in range(2, 12)]
    >>> model = numtok.TextRegressor(head="mdn:3", steps=300).fit(texts, areas)
    >>> model.predict(["a room of 4 m by 5 m"])
    array([20.3])
    """

    fitted_: ModelInMemory
    _calibration_rows: tuple[NDArray[np.float64], Forecasts]  # true values and predictions

    def __init__(
        self,
        scheme: str = "xval",
        head: str | None = None,
        preset: str = "nano",
        *,
        normalize: str | None = None,
        text_tokenizer: str | None = None,
        embedder: str | None = None,
        objective: str | None = None,
        steps: int = 1000,
        batch: int = 128,
        learning_rate: float | None = None,
        validation: float = 0.1,
        calibration: float = 0.1,
        point: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
    ) -> None:
        self.scheme = scheme
        self.head = head
        self.preset = preset
        self.normalize = normalize
        self.text_tokenizer = text_tokenizer
        self.embedder = embedder
        self.objective = objective
        self.steps = steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.calibration = calibration
        self.point = point
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike) -> "TextRegressor":
        """Train on the rows of X [n] and their numbers y [n], and return the regressor.

        At least two rows are needed, because some are held out.
        """
        with named_as_here():
            given = TextInput.of(X, y, self, reset=True)
            target = self._target(y, given.table.num_rows)
            self._check_point()
            self._check_held_out()
            with (
                TemporaryDirectory(prefix="numtok-") as folder,
                restored_generator(device_of(self.device)),
            ):
                self.fitted_, held_out = self._trained(given, target, Path(folder))
            self._columns = given.table.column_names
            fitted = np.delete(target, held_out)
            self._mean, self._least = float(fitted.mean(dtype=np.float64)), float(fitted.min())
            predicted = self._forecasts(given.table.take(held_out))
            self._calibration_rows = target[held_out].astype(np.float64), predicted
        return self

    def _check_held_out(self) -> None:
        for name, ends in (("validation", "neither"), ("calibration", "left")):
            fraction = getattr(self, name)
            check_scalar(fraction, name, Real, min_val=0, max_val=1, include_boundaries=ends)
        if self.validation + self.calibration >= 1:
            raise ValueError(
                "validation + calibration must be below 1 (got "
                f"{self.validation:g} + {self.calibration:g}). Reduce one of them"
            )

    def _target(self, y: ArrayLike, rows: int) -> NDArray[Any]:
        """Return y as finite numbers [rows]; integers remain integers."""
        checked = check_array(
            y,
            dtype="numeric",
            ensure_2d=False,
            input_name="y",
            estimator=self,
            ensure_min_samples=0,
        )
        target: NDArray[Any] = column_or_1d(checked, warn=True)
        check_consistent_length(range(rows), target)
        if (target == target[0]).all():
            raise ValueError(f"y is {target[0]:g} in every row. Pass numbers that differ")
        return target

    def _trained(
        self, given: TextInput, target: NDArray[Any], folder: Path
    ) -> tuple[ModelInMemory, NDArray[np.int64]]:
        """Train a model with the stages of the pipeline, whose files are written to a folder.

        Returns the model and the indices of the rows that are held out for calibration.
        """
        store = Store(folder / "store", lambda note: None)
        path = folder / "rows.parquet"
        columns = records_of(given.table, "X").columns
        field = next(name for name in ("y" + "_" * more for more in count()) if name not in columns)
        write_frame(given.table.append_column(field, pa.array(target)), path)
        seed = seed_of(self.random_state)
        held_out = f"validation={self.validation}"
        held_out += f",{CALIBRATION}={self.calibration}" if self.calibration else ""
        encoding = {
            "scheme": self.scheme,
            "target": field,
            "text_field": TEXT if given.bare else None,
            # Named, since a field "split" would otherwise have the splits of the rows.
            "fields": [] if given.bare else [name for name in columns if columns[name].varies],
            "normalize": self.normalize,
            "text_tokenizer": self.text_tokenizer,
            "split": f"{held_out},seed={seed}",
        }
        with named(path, "X"):
            encoded = encode.run(
                settings_of(EncodeConfig, (path,), encoding), store, lambda *progress: None
            )
        training = {
            "head": self.head,
            "preset": self.preset,
            "embedder": self.embedder,
            "objective": self.objective or objective_for(self.scheme, scheme_of(self.scheme)),
            "steps": self.steps,
            "batch": self.batch,
            "learning_rate": self.learning_rate,
            "seed": seed,
            "device": self.device,
        }
        made = train.run(
            settings_of(TrainConfig, (encoded.ref,), training), store, lambda progress: None
        )
        loaded = read_model(made.artifact, torch.device("cpu"))
        model = ModelInMemory(
            ref="the fitted model", model=loaded.model, codec=loaded.codec, trained=loaded.trained
        )
        assert encoded.artifact is not None  # only a dry run returns None
        if CALIBRATION not in splits(encoded.artifact):
            return model, np.empty(0, np.int64)
        ids = read_split(encoded.artifact, CALIBRATION).ids  # of rows that were rendered: indices
        return model, ids.cast(pa.int64()).to_numpy()

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the point prediction for each row, float64[n], as chosen by ``point``.

        It is NaN if the model writes something that is not a number.
        """
        with named_as_here():
            self._check_point()
        return self._answers(self._known(X), lambda one: getattr(one, self.point or "point")())

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        """Return split-conformal prediction intervals, float64[n, 2], as ``numtok predict
        --interval``.

        They contain the true values with at least the probability ``level`` (strictly between 0
        and 1), however wrong the model is. This holds on average over new rows and calibration
        rows, if they are exchangeable: not for each row, and not for rows from another time or
        source. The calibration rows (``calibration``) do not train or choose the model. With too
        few of them (less than 9 if ``level`` is 0.9) intervals are infinite, and a UserWarning is
        given. If the model writes something that is not a number, the mean of the training targets
        replaces it.
        """
        check_scalar(level, "level", Real, min_val=0, max_val=1, include_boundaries="neither")
        rows = self._known(X)
        if not self.calibration:
            raise ValueError(
                "predict_interval needs rows to calibrate intervals, but calibration is 0. Fit "
                "with calibration=0.1, or use predict_quantiles"
            )
        truth, predicted = self._calibration_rows
        if len(truth) < least(level):
            warnings.warn(
                f"predict_interval needs at least {least(level):,} calibration rows for the level "
                f"{level:g} (got {len(truth):,}), so intervals are infinite. Fit with more rows or "
                "a larger calibration",
                stacklevel=2,
            )
        clipped = {_STRATUM} if self._least >= 0 else ()
        units = np.arange(len(truth))
        calibrated = calibrate(truth, predicted, units, level, nonnegative=clipped)
        return np.column_stack(calibrated.intervals(self._forecasts(rows)))

    def _forecasts(self, rows: pa.Table) -> Forecasts:
        """Return the predictions of rows; the mean in training if they are not numbers."""

        def columns(predicted: PredictedNumbers) -> NDArray[np.float64]:
            points = predicted.point()[:, None]
            if predicted.why_none is not None:
                return points
            return np.hstack([points, predicted.quantiles(QUANTILES)])

        answers = self._answers(rows, columns) if len(rows) else np.empty((0, 1))
        points = answers[:, 0]
        return Forecasts(
            point=np.where(np.isnan(points), self._mean, points),
            quantiles=answers[:, 1:] if answers.shape[1] > 1 else None,
            strata=np.full(len(points), _STRATUM, object),
        )

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> NDArray[np.float64]:
        """Return quantiles of each row's distribution, float64[n, levels]. Levels must be strictly
        between 0 and 1.

        They are not calibrated on held-out rows; see :meth:`predict_interval`.
        """
        wanted = np.ravel(levels).tolist()
        return self._answers(self._known(X), lambda predicted: predicted.quantiles(wanted))

    def predict_distribution(self, X: Any) -> PredictedNumbers:
        """Return the predicted distributions of all rows, with their density, samples and scores.

        They take more memory than the other predictions.
        """
        rows = self._known(X)
        with named_as_here():
            return self._predicted(rows)

    def _check_point(self) -> None:
        if self.point is not None and self.point not in POINTS:
            raise unknown("point", self.point, POINTS)

    def _answers(
        self, rows: pa.Table, answer: Callable[[PredictedNumbers], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Apply ``answer`` to the predictions, one block of rows at a time."""
        blocks = (rows.slice(first, _AT_ONCE) for first in range(0, len(rows), _AT_ONCE))
        with named_as_here():
            return np.concatenate([answer(self._predicted(block)) for block in blocks])

    def _known(self, X: Any) -> pa.Table:
        """Return the rows of X, with the names of the columns in fit. Raises NotFittedError before
        fit."""
        check_is_fitted(self, "fitted_")
        with named_as_here():
            given = TextInput.of(X, "no_validation", self, reset=False)
        return given.table.rename_columns(self._columns)

    def _predicted(self, rows: pa.Table) -> PredictedNumbers:
        codec, model = self.fitted_.codec, self.fitted_.model.to(device_of(self.device))
        assert codec.template is not None
        queries = list(record_queries(records_of(rows, "X"), codec.template))
        options = Options(
            fill=AUTOREGRESSIVE if model.objective.causal else PARALLEL,
            constrained=True,
            point="mode",
            draws=0,
            batch=_BATCH,
        )
        texts = TextPredictor(self.fitted_, options)
        pieces = [query.pieces or () for query in queries]
        predictor = Predictor(self.fitted_, texts.with_holes(queries, pieces), options)
        reading = read_numbers(predictor, lambda note: None)
        in_answer = predictor.samples.in_answer[predictor.asked.numbers]
        values, _, valid = predictor.raw.values(reading, in_answer)
        return PredictedNumbers(
            raw=predictor.raw,
            reading=reading,
            points=np.where(valid, values, np.nan),
            calibration=self.fitted_.trained.calibration,
            why_none=None if predictor.has_distribution else _NO_DISTRIBUTION,
            in_answer=in_answer,
        )
