"""What needs no model, as predictions of single numbers: to be paired with those of models.

Reports have the figures of such baselines (``baselines``, ``tables``); here are their answers, and
those of boosted trees that were tuned on the validation split.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.data.tables.rows import VALIDATION, learnt_rows, read_table_of
from numtok.data.tables.table import Table
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_codec, read_split
from numtok.evaluation.baselines import baselines, features_beside, fits, fitted_on
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.queries import queries_of, target_names
from numtok.evaluation.tuned_boosting import Known, tuned
from numtok.records import LIMITS, TABLE, TRAIN
from numtok.store.artifact import Artifact
from numtok.training.features import Features, Inputs
from numtok.training.table_learner import held_back

TUNED = "tuned boosting"
_HELD_BACK = 0.1  # of a fold that has no split for it

#: Which number: id of its row, name of its target, place in the row; of a table fold for place.
Key = tuple[str, str, int]


class Rivals(NamedTuple):
    """Numbers by their keys, [n], and by name what is said of each, float64[n]; NaN: nothing."""

    keys: list[Key]
    values: Mapping[str, Floats]


def rivals(data: Artifact, split: str, rows: int | None = None) -> Rivals:
    """Predict a split of a table, or ``rows`` rows of encoded data as ``EncodedSplit.sample`` draws
    them; None predicts all.

    Limits, which are made of the truth, and what knows how long a number is have no part.
    """
    if data.kind == TABLE:
        return _of_table(read_table_of(data), split)
    samples, train = read_split(data, split).sample(rows), read_split(data, TRAIN)
    asked = queries_of(samples, causal=False)
    learnt = train.numbers[train.targets] if len(train.targets) else train.numbers
    learnt = learnt[np.isfinite(learnt)]
    mean = float(learnt.mean()) if len(learnt) else None
    found = dict(baselines(read_codec(data), samples, asked, train, mean, AUTOREGRESSIVE))
    values = {name: values for name, values in found.items() if name not in LIMITS}
    names = target_names(samples, asked)
    if (asked.targets >= 0).all() and find_spec("sklearn"):
        looked_at = read_split(data, VALIDATION)
        best = np.full(len(names), np.nan)
        for name in np.unique(names):
            mine = names == name
            best[mine] = _tuned(train, looked_at, samples, name, asked.targets[mine])
        values |= {} if np.isnan(best).all() else {TUNED: best}
    of = asked.rows[asked.queries]
    places = (asked.numbers - samples.number_rows[of]).tolist()
    ids = samples.ids.take(of).to_pylist()
    return Rivals(list(zip(ids, names.tolist(), places, strict=True)), values)


def _tuned(
    train: EncodedSplit, looked_at: EncodedSplit, samples: EncodedSplit, name: str, asked: Ints
) -> Floats:
    """float64[n] of the targets of one name that are asked for; NaN where nothing can be fitted."""
    values = np.full(len(asked), np.nan)
    targets = np.flatnonzero(looked_at.target_name.to_numpy(zero_copy_only=False) == name)
    known = features_beside(train, looked_at, name, targets)
    wanted = features_beside(train, samples, name, asked)
    if known is None or wanted is None or known.x.shape[1] != wanted.x.shape[1]:
        return values
    truth = looked_at.numbers[looked_at.targets[targets[known.known]]]
    finite = np.isfinite(truth)
    if finite.any():
        looking = Known(known.asked[finite], truth[finite])
        values[wanted.known] = tuned(Known(wanted.x, wanted.y), looking, wanted.asked)
    return values


def _of_table(table: Table, split: str) -> Rivals:
    """All folds, one after the other."""
    keys: list[Key] = []
    found: dict[str, list[Floats]] = {}
    for fold in range(len(table.file.splits)):
        rows = table.split(split, fold)
        keys += [(str(row), table.file.target, fold) for row in rows.tolist()]
        for name, values in _of_fold(table, fold, rows):
            found.setdefault(name, []).append(values)
    return Rivals(keys, {name: np.concatenate(parts) for name, parts in found.items()})


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
