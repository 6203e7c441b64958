"""Baseline predictions for individual numbers, for pairing with model predictions.

Reports contain only the metrics of baselines (see ``baselines`` and ``tables``). This module
computes the predictions of these baselines, and of boosted trees that are tuned on the validation
split.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.data.reading.split_rule import CALIBRATION, TRAIN
from numtok.data.tables.table import VALIDATION, Table, learnt_rows, read_table_of
from numtok.encoding.dataset import EncodedSplit, clustered
from numtok.encoding.splits import read_split, splits
from numtok.encoding.stored_codec import read_codec
from numtok.evaluation.baselines import (
    baselines,
    digest_of,
    fits,
    fitted_baselines,
    not_installed,
    remembered,
    tree_threads,
)
from numtok.evaluation.conformal import Ends, Forecasts, calibrate
from numtok.evaluation.fields import anchored_fields
from numtok.evaluation.intervals import calibrating
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.queries import Queries, queries_of, target_names
from numtok.evaluation.rows import Rows
from numtok.evaluation.target_features import (
    AnchoredRows,
    NotFitted,
    Targets,
    fitted_on,
    fitted_rows,
    target_features,
)
from numtok.evaluation.text_baselines import (
    TEXT_BASELINES,
    text_baselines,
)
from numtok.reports import INTERVAL_LEVEL, LIMITS
from numtok.store.artifact import TABLE, Artifact
from numtok.training.features import Features, Inputs
from numtok.training.trained_table import held_back

MEAN, MEDIAN, TUNED = "mean", "median", "tuned boosting"
_RATE, _LEAVES, _LOSSES = 0.05, (8, 31), ("squared_error", "absolute_error")
_TREES = 400  # maximum; fitting stops early when more trees do not help
_HELD_BACK = 0.1  # fraction of the training rows if a fold has no validation split
_tuned_trees: dict[bytes, Any] = {}  # by a digest of their inputs
_MOST_TUNED = 16  # that are remembered

#: Key of a number: row ID, target name, and index in the row (for tables, the fold).
Key = tuple[str, str, int]


class CalibrationRows(NamedTuple):
    """Predictions of a baseline for ``c`` rows that calibrate its intervals.

    predicted, truth
        Predictions and true values, float64[c].
    units
        Cluster of each row, int64[c]; rows outside clusters have a unit of their own.
    least
        Smallest training value.
    """

    predicted: Floats
    truth: Floats
    units: Ints
    least: float

    def intervals(self, point: Floats) -> Ends:
        """Return calibrated intervals at ``INTERVAL_LEVEL`` around predictions float64[n]."""
        rows = np.flatnonzero(np.isfinite(self.predicted))

        def forecasts(values: Floats) -> Forecasts:
            return Forecasts(point=values, quantiles=None, strata=np.zeros(len(values), object))

        calibrated = calibrate(
            self.truth[rows],
            forecasts(self.predicted[rows]),
            self.units[rows],
            INTERVAL_LEVEL,
            nonnegative=[0] if self.least >= 0 else (),
        )
        return calibrated.intervals(forecasts(point))


class Rivals(NamedTuple):
    """Baseline predictions for ``n`` numbers.

    keys
        Key of each number: row ID, target name, and index in the row (for tables, the fold).
    values
        Predictions float64[n] of each baseline, keyed by the baseline's name; NaN for numbers
        without a prediction.
    notes
        Sentences that explain why baselines are missing.
    calibration
        Calibration rows of each baseline, keyed by name, if all numbers have one target name.
    """

    keys: list[Key]
    values: Mapping[str, Floats]
    notes: list[str]
    calibration: Mapping[str, CalibrationRows] = {}

    def by_row(self) -> "Rivals":
        """Return the predictions of one number per row, keyed only by row and target."""
        return self._replace(keys=[(row, target, 0) for row, target, _ in self.keys])


def merged(parts: Sequence[Rivals]) -> Rivals:
    """Join baselines for the same numbers. Of baselines with one name, the first is kept.

    The order of the numbers is that of the first part; those that others lack are NaN.
    """
    keys, values, notes = parts[0].keys, dict[str, Floats](), list[str]()
    calibration: dict[str, CalibrationRows] = {}
    for part in parts:
        index = {key: row for row, key in enumerate(part.keys)}
        rows = np.array([index.get(key, -1) for key in keys])
        new = {name: each for name, each in part.calibration.items() if name not in values}
        calibration |= new
        for name, predicted in part.values.items():
            values.setdefault(name, np.append(predicted, np.nan)[rows])
        notes += [note for note in part.notes if note not in notes]
    return Rivals(keys, values, notes, calibration)


def rivals(
    data: Artifact, split: str, rows: int | None = None, names: Collection[str] | None = None
) -> Rivals:
    """Return baseline predictions for a split of a table or of encoded data.

    For encoded data, ``rows`` limits the number of rows, which are selected as in
    ``EncodedSplit.sample``. None means all rows. ``names`` are the baselines to fit. None means all
    but the median, because races use the median of each field.

    Baselines that are computed from the true values (``reports.LIMITS``) are excluded, and so is
    ``length``, which is computed from token counts.
    """
    if data.kind == TABLE:
        return _of_table(read_table_of(data), split, names)
    whole, train = read_split(data, split), read_split(data, TRAIN)
    drawn = whole.drawn(rows)
    samples = whole.take(drawn)
    queried = Rows(data, split, samples, np.unique(samples.target_row), drawn)
    parts = list(_parts(data, queried, train))
    of_train, *others, of_samples = anchored_fields(*parts)
    fitting = _Fitting(data, of_train, others[0] if others else None, names)
    queries = queries_of(samples, causal=False)
    predictions, notes = fitting.predicted(of_samples, queries)
    target_of_query = target_names(samples, queries)
    calibration: dict[str, CalibrationRows] = {}
    if others and (queries.targets >= 0).all() and len(np.unique(target_of_query)) == 1:
        calibration = dict(fitting.calibration(others[-1]))  # validation, if it is the only one
    row_of_query = queries.rows[queries.queries]
    positions = (queries.numbers - samples.number_rows[row_of_query]).tolist()
    ids = samples.ids.take(row_of_query).to_pylist()
    keys = list(zip(ids, target_of_query.tolist(), positions, strict=True))
    return Rivals(keys, _of_rivals(predictions, names), notes, calibration)


def _wanted(name: str, names: Collection[str] | None) -> bool:
    return name not in LIMITS if names is None else name in names


def _of_rivals(
    predictions: Mapping[str, Floats], names: Collection[str] | None
) -> dict[str, Floats]:
    """Return the predictions without the median if no names were given. Its calibration rows are
    kept."""
    return {name: each for name, each in predictions.items() if names or name != MEDIAN}


class _Fitting(NamedTuple):
    """Splits of encoded data that baselines are fitted to.

    validation
        Split that tunes trees; None if the data has no such split.
    names
        Names of the baselines, as for :func:`rivals`.
    """

    data: Artifact
    train: AnchoredRows
    validation: AnchoredRows | None
    names: Collection[str] | None

    def predicted(
        self, part: AnchoredRows, queries: Queries
    ) -> tuple[dict[str, Floats], list[str]]:
        """Return the predictions float64[a] of each baseline for the queried numbers of a split,
        and the reasons why others are missing."""
        train, names, notes = self.train.rows.samples, self.names, list[str]()
        targets = train.numbers[train.targets] if len(train.targets) else train.numbers
        targets = targets[np.isfinite(targets)]
        predictions = dict(
            baselines(
                read_codec(self.data),
                part.rows.samples,
                queries,
                train=train,
                train_mean=float(targets.mean()) if len(targets) else None,
                fill=AUTOREGRESSIVE,
            )
        )
        if any(_wanted(name, names) for name in fits()):
            fitted = fitted_baselines(self.train, part, queries)
            predictions |= fitted.values
            notes += fitted.notes
        if any(_wanted(name, names) for name in TEXT_BASELINES):
            of_texts = text_baselines(self.train, part, queries)
            predictions |= of_texts.values
            notes += of_texts.notes
        can_tune = self.validation and (queries.targets >= 0).all() and find_spec("sklearn")
        if can_tune and _wanted(TUNED, names):
            target_of_query = target_names(part.rows.samples, queries)
            best = np.full(len(target_of_query), np.nan)
            for name in np.unique(target_of_query):
                has_name = target_of_query == name
                best[has_name] = self._tuned(name, (part, queries.targets[has_name]))
            predictions |= {} if np.isnan(best).all() else {TUNED: best}
        wanted = {name: each for name, each in predictions.items() if _wanted(name, names)}
        return wanted, notes

    def calibration(self, part: AnchoredRows) -> Iterator[tuple[str, CalibrationRows]]:
        """Yield the name of each baseline, and its predictions for the rows of a split with one
        target name that calibrate intervals."""
        samples, queries = part.rows.samples, queries_of(part.rows.samples, causal=False)
        if not len(queries.targets):
            return
        train = self.train.rows.samples
        truth, least = samples.numbers[queries.numbers], train.numbers[train.targets]
        units = clustered(np.arange(len(samples)), samples.clusters)[queries.rows[queries.queries]]
        for name, values in self.predicted(part, queries)[0].items():
            usable = np.isfinite(values) & np.isfinite(truth)
            if usable.any():
                yield (
                    name,
                    CalibrationRows(
                        values[usable], truth[usable], units[usable], float(np.nanmin(least))
                    ),
                )

    def _tuned(self, name: str, queried: Targets) -> Floats:
        """Return predictions of tuned trees for the queried targets of one name, float64[n]; NaN if
        nothing is fitted."""
        assert self.validation is not None
        known = _finite_targets(self.validation, name)
        built = target_features(self.train, name, known, queried)
        if isinstance(built, NotFitted) or not len(known[1]):
            return np.full(len(queried[1]), np.nan)
        validation, features = built.others
        return tuned(
            LabeledRows(built.x, built.y), LabeledRows(validation, _values(*known)), features
        )


def _parts(data: Artifact, queried: Rows, train: EncodedSplit) -> Iterator[Rows]:
    """Yield the rows of the train split, of the validation and calibration splits (if there is a
    validation split) and the queried rows whose fields are features."""
    yield Rows(data, TRAIN, train, fitted_rows(train))
    existing = splits(data)
    for name in (VALIDATION, CALIBRATION) if VALIDATION in existing else ():
        if name in existing:
            samples = read_split(data, name)
            yield Rows(data, name, samples, np.unique(samples.target_row))
    yield queried


def _finite_targets(split: AnchoredRows, name: str) -> Targets:
    samples = split.samples
    targets = np.flatnonzero(samples.target_name.to_numpy(zero_copy_only=False) == name)
    return split, targets[np.isfinite(_values(split, targets))]


def _values(split: AnchoredRows, targets: Ints) -> Floats:
    return split.samples.numbers[split.samples.targets[targets]]


def _of_table(table: Table, split: str, names: Collection[str] | None) -> Rivals:
    """Return the predictions for the split in all folds of a table."""
    keys: list[Key] = []
    predictions: dict[str, list[Floats]] = {}
    calibration: dict[str, CalibrationRows] = {}
    columns, folds = Features(table.numbers, table.categories), len(table.file.splits)
    calibration_split = calibrating(table.splits()) if folds == 1 else None
    for fold in range(folds):
        rows = table.split(split, fold)
        keys += [(str(row), table.file.target, fold) for row in rows.tolist()]
        known = [] if calibration_split is None else [table.split(calibration_split)]
        queried = np.concatenate([*known, rows])
        count = len(queried) - len(rows)
        for name, values in rivals_of_fold(table, fold, columns.take(queried), names):
            predictions.setdefault(name, []).append(values[count:])
            if count:
                least = float(table.target[table.split(TRAIN)].min())
                truth = table.target[queried[:count]]
                calibration[name] = CalibrationRows(values[:count], truth, np.arange(count), least)
    notes = list(not_installed())
    if not table.file.features:
        notes.append("Baselines are not fitted: the table has no feature columns.")
    values_of = {name: np.concatenate(parts) for name, parts in predictions.items()}
    return Rivals(keys, _of_rivals(values_of, names), notes, calibration)


def rivals_of_fold(
    table: Table, fold: int, queried: Features, names: Collection[str] | None
) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each baseline in ``names`` (see :func:`rivals`) and its predictions
    float64[n] for ``n`` queried rows, fitted to the train split of a fold."""
    columns, training = Features(table.numbers, table.categories), learnt_rows(table, fold)
    for name, constant in ((MEAN, np.mean), (MEDIAN, np.median)):
        if _wanted(name, names):
            yield name, np.full(len(queried.numbers), constant(table.target[training]))
    if not table.file.features:
        return
    inputs = Inputs.fit(columns.take(training))

    def labeled(indices: Ints) -> LabeledRows:
        return LabeledRows(
            inputs.of(columns.take(indices)).astype(np.float64), table.target[indices]
        )

    features, train = inputs.of(queried).astype(np.float64), labeled(fitted_on(training, fold))
    for name, fit in fits().items():
        if _wanted(name, names):
            yield name, fit(*train, features)
    if find_spec("sklearn") and _wanted(TUNED, names):
        if VALIDATION in table.splits(fold):
            yield TUNED, tuned(train, labeled(table.split(VALIDATION, fold)), features)
        else:
            fitted, validation = held_back(len(training), _HELD_BACK, seed=0)
            yield TUNED, tuned(labeled(training[fitted]), labeled(training[validation]), features)


class LabeledRows(NamedTuple):
    """Features float64[n, k] and target values float64[n] for ``n`` rows."""

    features: Floats
    values: Floats


def tuned(train: LabeledRows, validation: LabeledRows, features: Floats) -> Floats:
    """Return predictions float64[n] of tuned boosted trees for features [n, k]. Requires
    scikit-learn.

    Trees are fitted to ``train`` with several settings. The trees with the smallest mean absolute
    error on ``validation`` are used; recent ones are cached. The predictions are NaN if no error is
    finite.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(tree_threads(train.features.size)):
        key = digest_of(*train, *validation)
        best = remembered(_tuned_trees, key, lambda: _best_trees(train, validation), _MOST_TUNED)
        if best is None:
            return np.full(len(features), np.nan)
        return np.asarray(best.predict(features), np.float64)


def _best_trees(train: LabeledRows, validation: LabeledRows) -> Any | None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    best, least = None, np.inf
    for leaves, loss in product(_LEAVES, _LOSSES):
        trees = HistGradientBoostingRegressor(
            loss=loss,
            learning_rate=_RATE,
            max_leaf_nodes=leaves,
            max_iter=_TREES,
            early_stopping=True,
            random_state=0,
        ).fit(train.features, train.values)
        error = float(np.abs(trees.predict(validation.features) - validation.values).mean())
        if error < least:
            best, least = trees, error
    return best
