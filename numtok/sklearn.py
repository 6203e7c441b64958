"""scikit-learn regressor that predicts a distribution for each row with one of numtok's heads.

The parameters match ``numtok train`` on a table without a validation split: with ``--seed`` as the
``random_state``, training gives the same weights. scikit-learn is an optional dependency.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import ArrayLike, NDArray

from numtok.data.tables.frames import frame_table, is_frame
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import DataError, TrainingFailed, UsageError, unknown
from numtok.models.distributions.predictive import Predictive
from numtok.models.presets import trunk
from numtok.setting_names import in_python
from numtok.settings.train import Config as TrainConfig
from numtok.training.device import device_of, oom_advice
from numtok.training.features import Features
from numtok.training.trained_table import FittedTable, FittingRecipe, Preparation, table_head

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_array, check_consistent_length, check_random_state, check_scalar
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise UsageError(
        "numtok.sklearn needs the package scikit-learn. Install: `pip install scikit-learn`"
    ) from None

POINTS = ("mean", "median", "mode")
_CATEGORIES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_dictionary,
)
_NUMBERS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_null,
)
_AT_ONCE = 1 << 13  # rows per block of distributions in memory


class DistributionRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the regressors, which keep a fitted PyTorch model in ``fitted_``."""

    fitted_: Any  # has the attribute ``model``

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> Any:
        if hasattr(self, "fitted_"):
            self.fitted_.model.cpu()  # so that it can be unpickled without a GPU
        return super().__getstate__()


class NumericRegressor(DistributionRegressor):
    """scikit-learn regressor: a multilayer perceptron with one of numtok's heads.

    It predicts a distribution for each row and is trained with early stopping.

    X is a 2-D array of numbers, or a data frame (pandas, polars), which may also have columns of
    strings or categories. NaN, or null in a frame, is a missing value; infinities are rejected. y
    is one finite number per row. :mod:`numtok.training.features` describes how missing values and
    categories become inputs.

    head
        Output head: ``pointwise``, ``riemann:BINS``, ``mdn:COMPONENTS`` or ``decoder:CODEC``, with
        settings such as ``decoder:ud,base=4``.
    preset
        Architecture, such as ``mlp,layers=3,width=256``.
    normalize
        Scaling of y during training, such as ``affine``; None for the head's default.
    epochs, patience
        Maximum number of epochs, and number of epochs without a better validation loss after which
        training stops early (0: never). The weights of the best epoch are kept.
    validation
        Fraction of the rows held out for the validation loss.
    batch, learning_rate, weight_decay
        Batch size, and settings of AdamW.
    point
        Statistic that :meth:`predict` returns: median, mean or mode of the distribution.
    random_state
        An int, a RandomState or None, as everywhere in scikit-learn. It determines the initial
        weights, the held-out rows and the order of the training rows.
    device
        ``auto`` (a GPU if available), ``cpu`` or ``cuda``, for fitting and predicting.

    Attributes after :meth:`fit`: ``n_features_in_``, ``feature_names_in_`` (data frames only),
    ``is_categorical_`` (bool[features]) and ``fitted_``, the trained model.

    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> y = 10 * x[:, 0] + np.random.default_rng(0).normal(size=200)
    >>> model = NumericRegressor("mdn:2", "mlp,layers=1,width=32", learning_rate=0.01).fit(x, y)
    >>> model.predict([[0.5]]).shape, model.sample([[0.5]], 3).shape
    ((1,), (1, 3))
    >>> low, high = model.predict_quantiles([[0.5]], [0.05, 0.95])[0]
    >>> bool(low < 5 < high)
    True

    Raises ValueError for invalid parameters or data, and TrainingFailed if the loss is not finite
    or memory runs out.
    """

    fitted_: FittedTable
    is_categorical_: NDArray[np.bool_]

    def __init__(
        self,
        head: str = "pointwise",
        preset: str = "mlp",
        normalize: str | None = None,
        epochs: int = 300,
        patience: int = 5,
        validation: float = 0.1,
        batch: int = 128,
        learning_rate: float = 5e-4,
        weight_decay: float = 0.0,
        point: str = "median",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
    ) -> None:
        self.head = head
        self.preset = preset
        self.normalize = normalize
        self.epochs = epochs
        self.patience = patience
        self.validation = validation
        self.batch = batch
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.point = point
        self.random_state = random_state
        self.device = device

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike) -> "NumericRegressor":
        """Train on X [n, features] and y [n], and return the regressor. At least two rows are
        needed, because one is held out."""
        columns = self._columns(X, y, reset=True)
        target = self._target(y, columns)
        with named_as_here():
            preparation = self._prepared(columns, target)
            with oom_advice(f"--batch {self.batch}; use a smaller one, or a smaller --preset"):
                self.fitted_ = preparation.finished()
        return self

    def _prepared(self, columns: Features, target: NDArray[np.float64]) -> Preparation:
        head = table_head(self.head)
        self._check_point()
        device = device_of(self.device)
        recipe = FittingRecipe.of(self, seed=seed_of(self.random_state))
        with restored_generator(device):
            return Preparation.of(
                columns,
                target,
                None,
                head=head,
                trunk=trunk(self.preset),
                normalizer=NORMALIZERS.build(self.normalize or head.normalizer),
                recipe=recipe,
                device=device,
            )

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the median, mean or mode of each row's distribution, float64[n], as chosen by
        ``point``."""
        columns = self._known(X)
        with named_as_here():
            self._check_point()
        return self._answers(columns, lambda predictive, part: getattr(predictive, self.point)())

    def _check_point(self) -> None:
        if self.point not in POINTS:
            raise unknown("point", self.point, POINTS)

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> NDArray[np.float64]:
        """Return quantiles of each row's distribution, float64[n, levels]. Levels must be strictly
        between 0 and 1."""
        wanted = check_array(levels, dtype=np.float64, ensure_2d=False, input_name="levels")
        return self._answers(
            self._known(X),
            lambda predictive, part: predictive.quantiles(column_or_1d(wanted).tolist()),
        )

    def sample(
        self, X: Any, n: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float64]:
        """Return ``n`` independent samples from each row's distribution, float64[rows, n]."""
        check_scalar(n, "n", Integral, min_val=1)
        rng = np.random.default_rng(seed_of(random_state))
        return self._answers(self._known(X), lambda predictive, part: predictive.sample(n, rng))

    def log_density(self, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Return the log density of each row's distribution at the row's y, float64[n], in nats,
        for y in its original units.

        It is -inf if y has probability 0, and NaN if the head defines no density.
        """
        columns = self._known(X)
        target = self._target(y, columns)
        return self._answers(columns, lambda predictive, part: predictive.log_density(target[part]))

    def _answers(
        self, columns: Features, answer: Callable[[Predictive, slice], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Apply ``answer`` to the predictive distributions, one block of rows at a time."""
        with named_as_here():
            self.fitted_.model.to(device_of(self.device))
        rows = np.arange(len(columns.numbers))
        answers = []
        for first in range(0, len(rows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            answers.append(answer(self.fitted_.predictive(columns.take(rows[part])), part))
        return np.concatenate(answers)

    # --- checking inputs --------------------------------------------------------------------------

    def _known(self, X: Any) -> Features:
        """Return X as features of the kinds seen in fit. Raises NotFittedError before fit."""
        check_is_fitted(self, "fitted_")
        return self._columns(X, "no_validation", reset=False)

    def _columns(self, X: Any, y: Any, *, reset: bool) -> Features:
        """Return X as columns, checked by scikit-learn. If ``reset`` is true, their names and kinds
        are stored."""
        checked = partial(
            check_array,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
            input_name="X",
            estimator=self,
        )
        if is_frame(X):
            validate_data(self, X, y, reset=reset, skip_check_array=True)
            columns, categorical = _of_frame(X, None if reset else self.is_categorical_)
            checked(columns.numbers, ensure_min_features=0 if columns.categories else 1)
        else:
            columns = Features(checked(X), [])
            validate_data(self, X, y, reset=reset, skip_check_array=True)
            categorical = np.zeros(self.n_features_in_, np.bool_)
        if reset:
            self.is_categorical_ = categorical
        elif len(wrong := np.flatnonzero(categorical != self.is_categorical_)):
            names = getattr(self, "feature_names_in_", np.arange(len(categorical)))
            now, then = ("a category", "a number")[:: 1 if categorical[wrong[0]] else -1]
            raise ValueError(
                f"feature {names[wrong[0]]!s} of X is {now} but was {then} when the model was "
                "fitted. Pass columns of the same kinds"
            )
        return columns

    def _target(self, y: ArrayLike, columns: Features) -> NDArray[np.float64]:
        """Return y as finite float64[n], one value per row of the columns."""
        checked = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        target: NDArray[np.float64] = column_or_1d(checked, warn=True)
        check_consistent_length(columns.numbers, target)
        return target


def _of_frame(
    frame: Any, fitted_kinds: NDArray[np.bool_] | None
) -> tuple[Features, NDArray[np.bool_]]:
    """Return the columns of a data frame, and which of them are categories (bool[features]).

    A column without values has the kind that it had in fit (``fitted_kinds``), or is a number.
    """
    with named_as_here():
        table = frame_table(frame, "X")
    numbers, categories, categorical = [np.empty((table.num_rows, 0))], [], []
    for index, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        kind = column.type
        if pa.types.is_null(kind) and fitted_kinds is not None:
            is_category = bool(fitted_kinds[index])
        else:
            is_category = any(is_type(kind) for is_type in _CATEGORIES)
        if pa.types.is_dictionary(kind):  # its values may be of any type
            column = column.cast(pa.dictionary(kind.index_type, pa.string()))
        if is_category:
            categories.append(column.cast(pa.string()).combine_chunks())
        elif any(is_type(kind) for is_type in _NUMBERS):
            values = column.cast(pa.float64(), safe=False).fill_null(np.nan)
            numbers.append(values.to_numpy()[:, None])
        else:
            raise ValueError(
                f"feature {name} of X must be a number, a string or a category (got type {kind}). "
                "Convert or drop it"
            )
        categorical.append(is_category)
    return Features(np.concatenate(numbers, axis=1), categories), np.array(categorical, np.bool_)


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return ``random_state`` itself if it is an int, as for ``--seed``; otherwise draw a seed from
    it."""
    random = check_random_state(random_state)
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(random.randint(np.iinfo(np.int32).max))


@contextmanager
def restored_generator(device: torch.device) -> Iterator[None]:
    """Restore the state of PyTorch's global generator, which belongs to the caller, after the
    block."""
    own = {"cuda": [device], "mps": [0]}.get(device.type, [])
    with torch.random.fork_rng(own, device_type="mps" if device.type == "mps" else "cuda"):
        yield


@contextmanager
def named_as_here() -> Iterator[None]:
    """Translate option names in errors raised in the block to Python: ``--lr`` becomes
    ``learning_rate``.

    Errors about parameters and data become ValueError, the convention of scikit-learn.
    """
    try:
        yield
    except (UsageError, DataError) as error:
        raise ValueError(in_python(str(error), TrainConfig)) from None
    except TrainingFailed as error:
        raise TrainingFailed(in_python(str(error), TrainConfig)) from error
