"""Selects the rows on a page (the largest errors and a random sample) and reads their texts.

A page shows all predictions in bins, but at most :data:`MOST` of them individually. A quarter of
the rows that are shown individually have the largest errors. The others are a random sample, which
is the same in every run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from numtok.analysis.panels.numbers import SizePanel
from numtok.analysis.picture import some
from numtok.arrays import Floats, Ints
from numtok.data.records.rendering import ROWS
from numtok.data.tables.table import Table, read_table_of
from numtok.encoding.splits import read_ids, read_pieces, splits
from numtok.errors import UsageError
from numtok.evaluation.prediction_table import TARGET, has_fields
from numtok.evaluation.report_files import ReportPredictions
from numtok.metrics.base import Predictions
from numtok.reports import FIELD, Report
from numtok.row import GROUP
from numtok.store.artifact import DATA, ENCODED, TABLE, Artifact, Resolve

MOST = 2000  # rows of a page
_WORST = 4  # one in this many rows has one of the largest errors
_AROUND = 110  # characters on each side of a number
_FEATURES = 8  # of a row of a table
_LONG = 1e20  # integers below it are shown in full


class Excerpt(NamedTuple):
    """The text before and after a number."""

    before: str
    after: str


class PageRows(NamedTuple):
    """The ``k`` rows on a page, chosen from ``n`` predictions. The row with the largest error comes
    first.

    rows
        int64[k]: indices of the rows among all predictions.
    errors
        float64[n]: errors of all predictions, by which the rows are sorted.
    fields
        Name of the field of each of the n predictions.
    excerpts
        Text around each of the k numbers.
    has_texts
        True if the data are still in the store. Otherwise, the excerpts are empty.
    """

    rows: Ints
    errors: Floats
    fields: list[str]
    excerpts: list[Excerpt]
    has_texts: bool


def fields_of(predictions: ReportPredictions) -> list[str]:
    """Return the field name of each predicted number or, if the data has no fields, the target
    name.

    In rows without named targets, every number is called ``number``.
    """
    column = FIELD if has_fields(predictions.table) else TARGET
    names: list[str] = predictions.table.column(column).to_pylist()
    return names


def page_rows(
    predictions: ReportPredictions,
    errors: Floats,
    report: Report,
    resolve: Resolve,
    most: int = MOST,
    records: str | None = None,
) -> PageRows:
    """Return the rows of a report that a page shows, chosen by their errors float64[n].

    ``most`` is the maximum number of rows, and ``records`` the REF of rendered records whose texts
    are shown instead of the data of the report.
    """
    rows = chosen(errors, most)
    if records is None:
        texts = read_excerpts(predictions, rows, report.data, report.split, resolve)
    else:
        texts = _of_records(predictions, rows, records, resolve)
    excerpts = [Excerpt("", "")] * len(rows) if texts is None else texts
    return PageRows(rows, errors, fields_of(predictions), excerpts, texts is not None)


def standard_errors(answers: Predictions, names: Sequence[str]) -> Floats:
    """Return the error of each number, float64[n], in units of the standard deviation in its field.

    The error |prediction - true value| is divided by the standard deviation of all true values in
    the same field, and is infinite if the prediction is not a number. ``names`` are the fields of
    the numbers.

    >>> standard_errors(Predictions.of([0, 2, 5], [1, 2, 7]), ["a", "a", "b"]).tolist()
    [1.0, 0.0, 2.0]
    """
    apart = np.abs(answers.prediction - answers.truth) / spreads(answers.truth, names)
    return np.where(answers.valid, apart, np.inf)


def spreads(truth: Floats, names: Sequence[str]) -> Floats:
    """Return, for each number, the standard deviation of the true values in its field, float64[n].

    ``truth`` are the true values float64[n], and ``names`` are their fields. The result is 1 if all
    true values in a field are equal or if the standard deviation is not finite.

    >>> spreads(np.array([0.0, 2.0, 5.0]), ["a", "a", "b"]).tolist()
    [1.0, 1.0, 1.0]
    """
    deviations = np.ones(len(truth))
    _, field_index = np.unique(np.array(names, object).astype(str), return_inverse=True)
    for field in range(field_index.max(initial=-1) + 1):
        in_field = field_index == field
        spread = float(np.std(truth[in_field]))
        deviations[in_field] = spread if 0 < spread < np.inf else 1.0
    return deviations


def chosen(errors: Floats, most: int) -> Ints:
    """Return the indices int64[k] of the rows to show, given the errors float64[n] of all rows.

    At most ``most`` rows are chosen: a quarter with the largest errors, and a random sample of the
    others. The row with the largest error comes first.

    >>> chosen(np.array([0.0, 3.0, 1.0]), 5).tolist()
    [1, 2, 0]
    """
    order = np.argsort(-errors, kind="stable")
    if len(order) <= most:
        return order
    worst, rest = order[: most // _WORST], order[most // _WORST :]
    return np.concatenate([worst, rest[some(len(rest), most - len(worst))]])


def parts_of(predictions: ReportPredictions, groups: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each number, its field and the value of each group, such as ``year``.

    The list of fields has the key ``field``, and the list for a group has the key ``group_NAME``.
    """
    parts = {"field": fields_of(predictions)}
    for name in groups:
        values = [""] * len(parts["field"])
        for value, rows in predictions.groups(name).items():
            for row in rows.tolist():
                values[row] = value
        parts[f"{GROUP}{name}"] = values
    return parts


def picks_of(
    rows: Ints, parts: Mapping[str, Sequence[str]], sizes: SizePanel | None
) -> list[list[str]]:
    """Return the keys that select each row on the page. ``rows`` int64[k] contains the row indices.

    Each row has a key for its field, one for each of its groups, and, with ``sizes``, one for the
    bin of its true value's magnitude.
    """
    picks = []
    for row in rows.tolist():
        keys = [f"{kind}:{names[row]}" for kind, names in parts.items()]
        if sizes is not None and sizes.bins[row] >= 0:
            keys.append(sizes.ranges[sizes.bins[row]][0])
        picks.append(keys)
    return picks


def read_excerpts(
    predictions: ReportPredictions, rows: Ints, data: str, split: str, resolve: Resolve
) -> list[Excerpt] | None:
    """Return the text around each number, in the order of ``rows`` (int64[k]).

    For a table, the text lists the features of the row. The result is None if the store no longer
    contains the data.
    """
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


def _of_records(
    predictions: ReportPredictions, rows: Ints, records: str, resolve: Resolve
) -> list[Excerpt] | None:
    try:
        table = pq.read_table(resolve(records, {DATA}).path / ROWS, columns=["text", "targets"])
    except UsageError:
        return None
    columns = predictions.table.take(rows).to_pydict()
    shown = table.take([int(name) for name in columns["id"]]).to_pylist()
    spans = [
        dict(row["targets"])[name][0] for row, name in zip(shown, columns[TARGET], strict=True)
    ]
    return [record_excerpt(row["text"], *span) for row, span in zip(shown, spans, strict=True)]


def record_excerpt(text: str, start: int, end: int) -> Excerpt:
    """Return the text of a record on both sides of its target. Its lines are joined, and long text
    is shortened before the line of the target.

    >>> record_excerpt("title: Alien\\nyear: 1979\\ngross: 105", 31, 34)
    Excerpt(before='title: Alien; year: 1979; gross: ', after='')
    """
    fields, newline, label = text[:start].rpartition("\n")
    if len(fields) > 2 * _AROUND:
        fields = fields[: 2 * _AROUND].rpartition(" ")[0] + " …"
    before = "; ".join([*fields.split("\n"), label]) if newline else label
    return Excerpt(before, text[end:].replace("\n", "; "))


def _of_texts(artifact: Artifact, split: str, columns: dict[str, Any]) -> list[Excerpt] | None:
    wanted = set(columns["id"])
    row_of = {name: row for row, name in enumerate(read_ids(artifact, split)) if name in wanted}
    if len(row_of) < len(wanted):
        return None
    every = sorted(set(row_of.values()))
    texts = read_pieces(artifact, split, np.array(every, np.int64))
    pieces = dict(zip(every, texts, strict=True))
    return [
        excerpt(*pieces[row_of[name]], position)
        for name, position in zip(columns["id"], columns["position"], strict=True)
    ]


def excerpt(pieces: Sequence[str], numbers: Sequence[float], position: int) -> Excerpt:
    """Return the text on both sides of the number at index ``position``.

    ``pieces`` are the texts between the ``numbers`` of a row. Long text is truncated at a word
    boundary.

    >>> excerpt(["A room of ", " m by ", " m."], [5.9, 6.0], 1)
    Excerpt(before='A room of 5.9 m by ', after=' m.')
    """
    before, after = pieces[position], pieces[position + 1]
    index = position
    while len(before) < _AROUND and index:
        index -= 1
        before = f"{pieces[index]}{_written(numbers[index])}{before}"
    index = position
    while len(after) < _AROUND and index + 1 < len(numbers):
        index += 1
        after = f"{after}{_written(numbers[index])}{pieces[index + 1]}"
    if len(before) > _AROUND:
        before = "… " + before[-_AROUND:].partition(" ")[2]
    if len(after) > _AROUND:
        after = after[:_AROUND].rpartition(" ")[0] + " …"
    return Excerpt(before, after)


def _written(value: float) -> str:
    """Return Python's repr, without ``.0`` for integers."""
    return repr(value).removesuffix(".0")


def _feature(value: float) -> str:
    """Return an integer in full, since it can be an identifier, and other values with five digits.

    >>> _feature(98482327390396416.0), _feature(2 / 3)
    ('98482327390396416', '0.66667')
    """
    return f"{value:.0f}" if value.is_integer() and abs(value) < _LONG else f"{value:.5g}"


def _features(table: Table, row: int) -> Excerpt:
    """Return the features of a row, by name; the target comes last."""
    entries = []
    numbers = categories = 0
    for feature in table.file.features:
        if feature.kind == "number":
            value = table.numbers[row, numbers]
            numbers += 1
            entries.append(f"{feature.name} {_feature(float(value))}" if np.isfinite(value) else "")
        else:
            entries.append(f"{feature.name} {table.categories[categories][row].as_py()}")
            categories += 1
    more = ", …" if len(entries) > _FEATURES else ""
    shown = ", ".join(entry for entry in entries[:_FEATURES] if entry)
    return Excerpt(f"{shown}{more}: {table.file.target} ", "")
