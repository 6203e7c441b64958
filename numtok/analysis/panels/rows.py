"""The rows that a page holds: the worst ones, and some of all, with their texts.

A page of a hundred thousand predictions shows all of them binned, and holds :data:`MOST` one by
one: the quarter of these with the largest errors, and of the others some that are drawn at random,
always the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numtok.analysis.panels.numbers import SizePanel
from numtok.analysis.picture import some
from numtok.arrays import Floats, Ints
from numtok.data.tables.table import Table, read_table_of
from numtok.encoding.splits import read_ids, read_pieces, splits
from numtok.errors import UsageError
from numtok.evaluation.report_files import TARGET, ReportPredictions, has_slots
from numtok.metrics.base import Predictions
from numtok.reports import SLOT, Report
from numtok.row import GROUP
from numtok.store.artifact import ENCODED, TABLE, Artifact, Resolve

MOST = 2000  # rows of a page
_WORST = 4  # a part of so many is of the largest errors
_AROUND = 110  # characters on each side of a number
_FEATURES = 8  # of a row of a table


class Excerpt(NamedTuple):
    """The text around a number."""

    before: str
    after: str


class PageRows(NamedTuple):
    """``k`` rows of ``n``, the largest error first.

    rows
        int64[k]: the indices of the predictions.
    errors
        float64[n]: the rows are sorted by these.
    slots
        The name of the slot of each of the n.
    excerpts
        The text around each of the k.
    has_texts
        Whether the data are still in the store; if not, excerpts are empty.
    """

    rows: Ints
    errors: Floats
    slots: list[str]
    excerpts: list[Excerpt]
    has_texts: bool


def slots_of(predictions: ReportPredictions) -> list[str]:
    """What each number is: its slot, or where none is said the name of its target; ``number`` in
    rows that name none."""
    column = SLOT if has_slots(predictions.table) else TARGET
    names: list[str] = predictions.table.column(column).to_pylist()
    return names


def page_rows(
    predictions: ReportPredictions,
    errors: Floats,
    report: Report,
    resolve: Resolve,
    most: int = MOST,
) -> PageRows:
    """Choose rows of a report of numbers by their errors float64[n]."""
    rows = chosen(errors, most)
    found = read_excerpts(predictions, rows, report.data, report.split, resolve)
    excerpts = [Excerpt("", "")] * len(rows) if found is None else found
    return PageRows(rows, errors, slots_of(predictions), excerpts, found is not None)


def standard_errors(answers: Predictions, names: Sequence[str]) -> Floats:
    """Return float64[n]: distances from the true values in standard deviations of the true values
    of the same slot; infinite if there is no number.

    >>> standard_errors(Predictions.of([0, 2, 5], [1, 2, 7]), ["a", "a", "b"]).tolist()
    [1.0, 0.0, 2.0]
    """
    apart = np.abs(answers.prediction - answers.truth) / spreads(answers.truth, names)
    return np.where(answers.valid, apart, np.inf)


def spreads(truth: Floats, names: Sequence[str]) -> Floats:
    """float64[n]: of each number the standard deviation of the truths (float64[n]) of its slot;
    1 where all are one.

    >>> spreads(np.array([0.0, 2.0, 5.0]), ["a", "a", "b"]).tolist()
    [1.0, 1.0, 1.0]
    """
    found = np.ones(len(truth))
    _, place = np.unique(np.array(names, object).astype(str), return_inverse=True)
    for slot in range(place.max(initial=-1) + 1):
        mine = place == slot
        spread = float(np.std(truth[mine]))
        found[mine] = spread if 0 < spread < np.inf else 1.0
    return found


def chosen(errors: Floats, most: int) -> Ints:
    """int64[k]: the places of the rows that are held of n, whose errors are float64[n].

    >>> chosen(np.array([0.0, 3.0, 1.0]), 5).tolist()
    [1, 2, 0]
    """
    order = np.argsort(-errors, kind="stable")
    if len(order) <= most:
        return order
    worst, rest = order[: most // _WORST], order[most // _WORST :]
    return np.concatenate([worst, rest[some(len(rest), most - len(worst))]])


def parts_of(predictions: ReportPredictions, groups: Iterable[str]) -> dict[str, list[str]]:
    """What each of n numbers is part of, by the kind of key that rows are picked by: its slot, and
    its value of some groups."""
    found = {"slot": slots_of(predictions)}
    for name in groups:
        told = [""] * len(found["slot"])
        for value, rows in predictions.groups(name).items():
            for row in rows.tolist():
                told[row] = value
        found[f"{GROUP}{name}"] = told
    return found


def picks_of(
    rows: Ints, parts: Mapping[str, Sequence[str]], sizes: SizePanel | None
) -> list[list[str]]:
    """Of each row that is held (int64[k]) the keys of what it is part of, and of its magnitude."""
    found = []
    for row in rows.tolist():
        keys = [f"{kind}:{names[row]}" for kind, names in parts.items()]
        if sizes is not None and sizes.bins[row] >= 0:
            keys.append(sizes.ranges[sizes.bins[row]][0])
        found.append(keys)
    return found


def read_excerpts(
    predictions: ReportPredictions, rows: Ints, data: str, split: str, resolve: Resolve
) -> list[Excerpt] | None:
    """The texts around some numbers, in the order of ``rows`` (int64[k]); of a table its features.
    None where the data are no longer in the store."""
    try:
        artifact = resolve(data, {ENCODED, TABLE})
    except UsageError:
        return None
    columns = predictions.table.take(rows).to_pydict()
    if artifact.kind == TABLE:
        table = read_table_of(artifact)
        return [_features(table, int(row)) for row in columns["id"]]
    if split not in splits(artifact):
        return None
    return _of_texts(artifact, split, columns)


def _of_texts(artifact: Artifact, split: str, columns: dict[str, Any]) -> list[Excerpt] | None:
    wanted = set(columns["id"])
    place = {name: row for row, name in enumerate(read_ids(artifact, split)) if name in wanted}
    if len(place) < len(wanted):
        return None
    every = sorted(set(place.values()))
    texts = read_pieces(artifact, split, np.array(every, np.int64))
    pieces = dict(zip(every, texts, strict=True))
    return [
        excerpt(*pieces[place[name]], position)
        for name, position in zip(columns["id"], columns["position"], strict=True)
    ]


def excerpt(pieces: Sequence[str], numbers: Sequence[float], position: int) -> Excerpt:
    """The text on both sides of the number at that position, cut between words where it is long.

    >>> excerpt(["A room of ", " m by ", " m."], [5.9, 6.0], 1)
    Excerpt(before='A room of 5.9 m by ', after=' m.')
    """
    before, after = pieces[position], pieces[position + 1]
    place = position
    while len(before) < _AROUND and place:
        place -= 1
        before = f"{pieces[place]}{_written(numbers[place])}{before}"
    place = position
    while len(after) < _AROUND and place + 1 < len(numbers):
        place += 1
        after = f"{after}{_written(numbers[place])}{pieces[place + 1]}"
    if len(before) > _AROUND:
        before = "… " + before[-_AROUND:].partition(" ")[2]
    if len(after) > _AROUND:
        after = after[:_AROUND].rpartition(" ")[0] + " …"
    return Excerpt(before, after)


def _written(value: float) -> str:
    """Python's repr, integers without a point."""
    return repr(value).removesuffix(".0")


def _features(table: Table, row: int) -> Excerpt:
    """The features of a row, by name; the target comes last."""
    told = []
    numbers = categories = 0
    for feature in table.file.features:
        if feature.kind == "number":
            value = table.numbers[row, numbers]
            numbers += 1
            told.append(f"{feature.name} {value:.5g}" if np.isfinite(value) else "")
        else:
            told.append(f"{feature.name} {table.categories[categories][row].as_py()}")
            categories += 1
    more = ", …" if len(told) > _FEATURES else ""
    shown = ", ".join(one for one in told[:_FEATURES] if one)
    return Excerpt(f"{shown}{more}: {table.file.target} ", "")
