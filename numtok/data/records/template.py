"""Rows of text with targets, rendered from records.

A row is one line ``name: value`` per field, in the order of the file, then one line per target::

    title: Alien
    released: May 25 1979
    gross: 104931801

If the text is a single field, it comes first, without its name. A missing value has no line.
Numbers are written in the default notation, with the digits of the file. The notations of the file
are stored in the template, so the text of a row never depends on the other rows of a new file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.records.columns import ColumnKind, index_reason
from numtok.data.records.notation import DEFAULT, NOTATIONS, Notation, usual_notation
from numtok.data.records.reader import REASONS, Records, SkippedRows
from numtok.data.records.row_template import NotationName, RowTemplate
from numtok.errors import DataError, UsageError, unknown
from numtok.names import drop_option

_LARGEST = 1e150  # its square, and so every variance, fits into a float64
_WITH_UNIT = re.compile(r"\s*[+-]?[0-9][0-9.,]*\s*(%|[A-Za-z]+\.?)\s*$")  # 5%, 5 kg
_INFERRED: Mapping[str, NotationName] = {}


def prompts_of(template: RowTemplate, records: Records) -> "list[pa.Array[Any]]":
    """Return the text before each target, as one string array [n] per target.

    A row of text is each prompt followed by the number of that target. Raises UsageError if a field
    is missing from the file.
    """
    first, *others = template.targets
    lines = [_line(template, records, name) for name in template.fields]
    prompts = [pc.binary_join_element_wise(*lines, f"{first}: ", "")]
    rows = len(records)
    return prompts + [pa.array([f"\n{name}: "] * rows, pa.string()) for name in others]


def _line(template: RowTemplate, records: Records, name: str) -> "pa.Array[Any]":
    """Return the line of a field in each row [n]; empty where the value is missing."""
    before = "" if template.bare else f"{name}: "
    line = pc.binary_join_element_wise(before, cells(template, records, name), "\n", "")
    return pc.fill_null(line, "")


def cells(template: RowTemplate, records: Records, name: str) -> "pa.Array[Any]":
    """Return the strings of a field [n] for the text: numbers in the default notation, others as
    written.

    Raises UsageError if the field is missing from the file.
    """
    values = records.column(name)
    notation = template.notations.get(name)
    if notation is None:
        return values
    return pc.coalesce(records.numbers(name, NOTATIONS[notation]), values)


class RenderedRows(NamedTuple):
    """``n`` rows of text.

    texts [n]
        The texts, with the numbers of all targets.
    spans
        Code points at which the number of each target begins and ends, int64[n, 2].
    """

    texts: "pa.Array[Any]"
    spans: dict[str, NDArray[np.int64]]


def rendered(template: RowTemplate, records: Records) -> RenderedRows:
    """Render records whose targets have been checked by :func:`check_targets`."""
    texts = pa.array([""] * len(records), pa.string())
    spans = {}
    for name, prompt in zip(template.targets, prompts_of(template, records), strict=True):
        before = pc.binary_join_element_wise(texts, prompt, "")
        literals = target_literals(records, name, template.notations[name])
        texts = pc.binary_join_element_wise(before, literals, "")
        ends = [pc.utf8_length(part).to_numpy().astype(np.int64) for part in (before, texts)]
        spans[name] = np.column_stack(ends)
    return RenderedRows(texts, spans)


def template_of(
    records: Records,
    targets: Sequence[str],
    fields: Sequence[str] = (),
    text_field: str | None = None,
    drop: Sequence[str] = (),
) -> RowTemplate:
    """Return the template for a file.

    targets
        Fields to predict.
    fields, text_field
        Fields of the text, or the only one. By default all fields but the targets, fields with the
        same value in every row, indexes that pandas wrote, and fields named ``split``.
    drop
        Fields to leave out.

    The settings of the commands check that these names do not contradict each other. Raises
    UsageError if a name is unknown, and DataError if no field is left.
    """
    for name in (*targets, *fields, *drop, *([] if text_field is None else [text_field])):
        if name not in records.names:
            known = filter(None, records.names)
            raise UsageError(f"{records.path}: {unknown('field', name, known)}")
    left_out = {*targets, *drop, "split"}
    given = fields if text_field is None else [text_field]
    chosen = list(given) or [
        name
        for position, (name, column) in enumerate(records.columns.items())
        if name not in left_out and column.varies and index_reason(name, position) is None
    ]
    if not len(records):
        raise DataError(f"{records.path} has no rows. Pass a file with at least one record")
    if not chosen:
        raise DataError(
            f"{records.path}: no field is left besides the target. A row needs at least one to "
            "predict from"
        )
    notations = {name: _target_notation(records, name).name for name in targets}
    for name in chosen:
        if (notation := records.columns[name].notation) is not None:
            notations[name] = notation.name
    return RowTemplate(
        targets=list(targets), fields=chosen, notations=notations, bare=text_field is not None
    )


# --- targets --------------------------------------------------------------------------------------


def _target_notation(records: Records, name: str) -> Notation:
    return usual_notation(records.column(name), records.decimal) or DEFAULT


def target_literals(
    records: Records, name: str, notation: NotationName | None = None
) -> "pa.Array[Any]":
    """Return the numbers of a target [n] as written, in the default notation; null for values that
    are missing, not numbers, or too large.

    ``notation`` is that of a template; None for the notation of most values.
    """
    if notation is None:
        plain = _target_notation(records, name).plain(records.column(name))
    else:
        plain = records.numbers(name, NOTATIONS[notation])
    sizes = pc.abs(plain.cast(pa.float64()))
    return pc.if_else(pc.less_equal(sizes, _LARGEST), plain, pa.scalar(None, pa.string()))


class UsableTargets(NamedTuple):
    """Which records have all targets, and which are skipped.

    kept
        Mask of the usable records, bool[n].
    skipped
        The other records.
    """

    kept: "pa.Array[Any]"
    skipped: SkippedRows


def usable_targets(
    records: Records, targets: Sequence[str], notations: Mapping[str, NotationName] = _INFERRED
) -> UsableTargets:
    """Find the records in which no target is missing or not a number.

    ``notations`` are those of an earlier template; empty to infer them.
    """
    literals = [target_literals(records, name, notations.get(name)) for name in targets]
    usable = np.column_stack([column.is_valid().to_numpy(False) for column in literals])
    kept = usable.all(axis=1)
    skipped, reasons = np.flatnonzero(~kept).tolist(), []
    for row in skipped[:REASONS]:
        name = targets[int(usable[row].argmin())]
        value = records.column(name)[row].as_py()
        actual = "it is missing" if value is None else f"got {value[:40]!r}"
        if value is not None and _WITH_UNIT.match(value):
            actual += ", which has a unit"
        reasons.append(f"{records.where(row)}: target {name!r} must be a number ({actual})")
    return UsableTargets(pa.array(kept), SkippedRows(len(skipped), reasons))


def check_targets(
    records: Records, targets: Sequence[str], notations: Mapping[str, NotationName] = _INFERRED
) -> UsableTargets:
    """Find the usable records, as :func:`usable_targets` does.

    Raises DataError if no record is usable, or if a target has the same value in all of them.
    """
    usable = usable_targets(records, targets, notations)
    if usable.skipped.count == len(records) > 0:
        raise DataError(
            f"{usable.skipped.reasons[0]}, like every row. Correct them, or choose another field: "
            "--target"
        )
    for name in targets:
        literals = target_literals(records, name, notations.get(name))
        values = literals.filter(usable.kept).cast(pa.float64())
        if len(values) > 1 and pc.count_distinct(values).as_py() == 1:
            raise DataError(
                f"{records.path}: target {name!r} is {values[0].as_py():g} in every row, so there "
                "is nothing to predict. Choose another field: --target"
            )
    return usable


def proposals(columns: Sequence[ColumnKind], template: RowTemplate) -> list[str]:
    """Return notes on fields of the text that look like ids of rows, or that would be rounded, and
    on columns that pandas wrote as an index."""
    notes = []
    for position, column in enumerate(columns):
        if column.name not in template.fields:
            if column.varies and (reason := index_reason(column.name, position)):
                notes.append(f"{reason}, so it is left out")
            continue
        rounded = "integers beyond 2^53, which are rounded" if column.rounded else ""
        if column.kind == "id" or column.numbered:
            more = f" and {rounded}" if rounded else ""
            notes.append(
                f"{column.name!r} has a different value in almost every row{more}. If it only "
                f"names rows, leave it out: {drop_option(column.name)}"
            )
        elif rounded:
            notes.append(
                f"{column.name!r} has {rounded}. If they are names, leave it out: "
                f"{drop_option(column.name)}"
            )
    return notes
