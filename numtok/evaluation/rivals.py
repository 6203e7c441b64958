"""What needs no model, as predictions of single numbers: to be paired with those of models.

Reports have the figures of such baselines (``baselines``, ``tables``); here are their answers, and
those of boosted trees that were tuned on the validation split.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import product
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import VALIDATION, Table, learnt_rows, read_table_of
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_codec, read_split
from numtok.evaluation.baselines import (
    baselines,
    fits,
    fitted_baselines,
    not_fitted,
    not_installed,
    tree_threads,
)
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.queries import queries_of, target_names
from numtok.evaluation.slots import Rows, number_fields
from numtok.evaluation.target_features import (
    FieldedSplit,
    NotFitted,
    Targets,
    fitted_on,
    fitted_rows,
    target_features,
)
from numtok.reports import LIMITS
from numtok.store.artifact import TABLE, Artifact
from numtok.training.features import Features, Inputs
from numtok.training.trained_table import held_back

TUNED = "tuned boosting"
_RATE, _LEAVES, _LOSSES = 0.05, (8, 31), ("squared_error", "absolute_error")
_TREES = 400  # at most; no more are added where those last added do not help
_HELD_BACK = 0.1  # of a fold that has no split for it

#: Which number: id of its row, name of its target, place in the row; of a table fold for place.
Key = tuple[str, str, int]


class Rivals(NamedTuple):
    """Keys of ``n`` numbers, and the predictions of each baseline by name, float64[n], NaN for
    none. ``notes`` are sentences on baselines that are not fitted."""

    keys: list[Key]
    values: Mapping[str, Floats]
    notes: list[str]


def rivals(data: Artifact, split: str, rows: int | None = None) -> Rivals:
    """Predict a split of a table, or ``rows`` rows of encoded data as ``EncodedSplit.sample`` draws
    them; None predicts all.

    Limits, which are made of the truth, and what knows how long a number is have no part.
    """
    if data.kind == TABLE:
        return _of_table(read_table_of(data), split)
    whole, train = read_split(data, split), read_split(data, TRAIN)
    drawn = whole.drawn(rows)
    samples = whole.take(drawn)
    asked = queries_of(samples, causal=False)
    learnt = train.numbers[train.targets] if len(train.targets) else train.numbers
    learnt = learnt[np.isfinite(learnt)]
    mean = float(learnt.mean()) if len(learnt) else None
    found = dict(
        baselines(
            read_codec(data), samples, asked, train=train, train_mean=mean, fill=AUTOREGRESSIVE
        )
    )
    of_train, of_looked_at, of_samples = _fielded(
        data, Rows(data, split, samples, np.unique(samples.target_row), drawn), train
    )
    found |= dict(fitted_baselines(of_train, of_samples, asked))
    values = {name: values for name, values in found.items() if name not in LIMITS}
    names = target_names(samples, asked)
    if (asked.targets >= 0).all() and find_spec("sklearn"):
        best = np.full(len(names), np.nan)
        for name in np.unique(names):
            mine = names == name
            best[mine] = _tuned(of_train, of_looked_at, name, (of_samples, asked.targets[mine]))
        values |= {} if np.isnan(best).all() else {TUNED: best}
    of = asked.rows[asked.queries]
    places = (asked.numbers - samples.number_rows[of]).tolist()
    ids = samples.ids.take(of).to_pylist()
    return Rivals(
        list(zip(ids, names.tolist(), places, strict=True)),
        values,
        list(not_fitted(of_train, of_samples, asked)),
    )


def _fielded(data: Artifact, asked: Rows, train: EncodedSplit) -> list[FieldedSplit]:
    """The train and the validation split, and the rows that are asked for, by field."""
    looked_at = read_split(data, VALIDATION)
    return number_fields(
        Rows(data, TRAIN, train, fitted_rows(train)),
        Rows(data, VALIDATION, looked_at, np.unique(looked_at.target_row)),
        asked,
    )


def _tuned(train: FieldedSplit, looked_at: FieldedSplit, name: str, asked: Targets) -> Floats:
    """float64[n] of the targets of one name that are asked for; NaN where nothing can be fitted."""
    samples = looked_at.samples
    targets = np.flatnonzero(samples.target_name.to_numpy(zero_copy_only=False) == name)
    truth = samples.numbers[samples.targets[targets]]
    finite = np.isfinite(truth)
    built = target_features(train, name, (looked_at, targets[finite]), asked)
    if isinstance(built, NotFitted) or not finite.any():
        return np.full(len(asked[1]), np.nan)
    known, wanted = built.others
    return tuned(Known(built.x, built.y), Known(known, truth[finite]), wanted)


def _of_table(table: Table, split: str) -> Rivals:
    """All folds, one after the other."""
    keys: list[Key] = []
    found: dict[str, list[Floats]] = {}
    for fold in range(len(table.file.splits)):
        rows = table.split(split, fold)
        keys += [(str(row), table.file.target, fold) for row in rows.tolist()]
        for name, values in _of_fold(table, fold, rows):
            found.setdefault(name, []).append(values)
    notes = list(not_installed())
    if not table.file.features:
        notes.append("Baselines are not fitted: the table has no feature columns.")
    return Rivals(keys, {name: np.concatenate(parts) for name, parts in found.items()}, notes)


def _of_fold(table: Table, fold: int, rows: Ints) -> Iterator[tuple[str, Floats]]:
    columns, learnt = Features(table.numbers, table.categories), learnt_rows(table, fold, None, 0)
    yield "mean", np.full(len(rows), table.target[learnt].mean())
    if not table.file.features:
        return
    inputs = Inputs.fit(columns.take(learnt))

    def known(some: Ints) -> Known:
        return Known(inputs.of(columns.take(some)).astype(np.float64), table.target[some])

    asked, train = known(rows).features, known(fitted_on(learnt, fold))
    for name, fit in fits().items():
        yield name, fit(*train, asked)
    if find_spec("sklearn"):
        if VALIDATION in table.splits(fold):
            yield TUNED, tuned(train, known(table.split(VALIDATION, fold)), asked)
        else:
            mine, others = held_back(len(learnt), _HELD_BACK, seed=0)
            yield TUNED, tuned(known(learnt[mine]), known(learnt[others]), asked)


class Known(NamedTuple):
    """``n`` rows whose target is known: features float64[n, k], values float64[n]."""

    features: Floats
    values: Floats


def tuned(train: Known, looked_at: Known, asked: Floats) -> Floats:
    """Fitted to ``train`` with each of a few settings, of which the one with the least mean
    absolute error on ``looked_at`` predicts: of features [n, k], float64[n]. Needs scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    best, least = None, np.inf
    with threadpool_limits(tree_threads(train.features)):
        for leaves, loss in product(_LEAVES, _LOSSES):
            model = HistGradientBoostingRegressor(
                loss=loss,
                learning_rate=_RATE,
                max_leaf_nodes=leaves,
                max_iter=_TREES,
                early_stopping=True,
                random_state=0,
            ).fit(train.features, train.values)
            error = float(np.abs(model.predict(looked_at.features) - looked_at.values).mean())
            if error < least:
                best, least = model, error
        if best is None:  # no error is finite
            return np.full(len(asked), np.nan)
        return np.asarray(best.predict(asked), np.float64)
