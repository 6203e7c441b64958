"""Rows as columns, read directly from JSON lines or built from records.

A fast path reads the common JSON forms of each field, at a million short rows per second
(:meth:`RowColumns.from_values`). All other rows are decoded one by one as ``row.Row``
(:meth:`RowColumns.from_records`). Both return the same columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.data.reading.arrow import column, constant, slices, strings
from numtok.data.reading.lines import FIELDS, Lines
from numtok.data.reading.nested_values import members_of, pairs_in
from numtok.data.reading.values import Values, distinct, integers, unquoted
from numtok.reports import USUAL_BASELINES
from numtok.row import CLUSTER, FLOOR, GROUP, Row, as_text
from numtok.stored_json import Scalar

NO_ANSWER = np.iinfo(np.int64).min  # for rows without answer_start
_FAR = 10**18  # code points; beyond the end of any text
_QUOTE, _NULL, _MINUS = ord('"'), ord("n"), ord("-")
_WORD = str | int | None  # type of a label or a cluster


class Categories(NamedTuple):
    """A column of ``n`` strings with few distinct values, stored as integer codes and names.

    Strings may be missing.
    """

    codes: NDArray[np.int32]  # [n] index into the names, -1 for none
    names: list[str]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> "Categories":
        """Encode strings; None is a missing string. Names are in order of first appearance."""
        index: dict[str, int] = {}
        codes = [-1 if value is None else index.setdefault(value, len(index)) for value in values]
        return cls(np.array(codes, np.int32), list(index))

    @classmethod
    def some(cls, values: Sequence[str | None]) -> "Categories | None":
        """Encode strings like :meth:`of`, but return None if all values are None."""
        categories = cls.of(values)
        return categories if categories.names else None

    def at(self, index: int) -> str | None:
        """Return the string at an index, or None if it is missing."""
        code = self.codes[index]
        return None if code < 0 else self.names[code]

    def take(self, keep: NDArray[np.int64] | NDArray[np.bool_]) -> "Categories":
        """Return the strings at indices (int64[k]) or selected by a mask (bool[n])."""
        return Categories(self.codes[keep], self.names)

    def filled(self, name: str) -> "Categories":
        """Return a copy in which missing strings are replaced by ``name``."""
        names = self.names if name in self.names else [*self.names, name]
        return Categories(np.where(self.codes < 0, np.int32(names.index(name)), self.codes), names)

    def places(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the names that occur, in sorted order, each with its indices (int64[k])."""
        for name in sorted(self.names):
            if len(indices := np.flatnonzero(self.codes == self.names.index(name))):
                yield name, indices

    def column(self) -> "pa.Array[Any]":
        """Return the strings as an Arrow array [n]; missing strings are null."""
        if not self.names:
            return pa.nulls(len(self.codes), pa.string())
        codes = column(self.codes, self.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, strings(self.names)).dictionary_decode()


def _renumbered(rows: NDArray[np.int32], keep: NDArray[np.int64], count: int) -> NDArray[np.int32]:
    """Return rows as indices among those that are kept, out of ``count``; -1 for the others."""
    new_index = np.full(count, -1, np.int32)
    new_index[keep] = np.arange(len(keep))
    return new_index[rows]


class Targets(NamedTuple):
    """The ``k`` targets in a set of rows, as columns. A target is a named span of a text."""

    rows: NDArray[np.int32]  # [k] increasing
    names: Categories  # [k]
    starts: NDArray[np.int64]  # [k] in code points of the row's text
    ends: NDArray[np.int64]  # [k]
    floors: Mapping[str, NDArray[np.float64]] = {}  # [k] by name, NaN if missing

    def take(self, keep: NDArray[np.int64], rows: int) -> "Targets":
        """Return the targets of selected rows, with the rows renumbered from 0.

        keep
            Increasing indices of the selected rows, int64[kept rows].
        rows
            Number of rows before the selection.
        """
        indices = _renumbered(self.rows, keep, rows)
        kept = indices >= 0
        return Targets(
            indices[kept],
            self.names.take(kept),
            self.starts[kept],
            self.ends[kept],
            {name: values[kept] for name, values in self.floors.items()},
        )


class NotNumbers(NamedTuple):
    """``k`` spans of texts without numbers, as columns."""

    rows: NDArray[np.int32]  # [k] increasing
    starts: NDArray[np.int64]  # [k] in code points of the row's text
    ends: NDArray[np.int64]  # [k]

    def take(self, keep: NDArray[np.int64], rows: int) -> "NotNumbers":
        """Return the spans of the rows at increasing indices ``keep`` (int64[k]) out of ``rows``
        rows, which are renumbered from 0."""
        indices = _renumbered(self.rows, keep, rows)
        kept = indices >= 0
        return NotNumbers(indices[kept], self.starts[kept], self.ends[kept])


NO_TARGETS = Targets(
    np.empty(0, np.int32), Categories(np.empty(0, np.int32), []), *np.empty((2, 0), np.int64)
)


class RowOffsets(NamedTuple):
    """File index and offsets of ``n`` rows, which form default ids such as ``0:4096``."""

    file: int
    offsets: NDArray[np.int64]  # [n]

    def ids(self) -> "pa.Array[Any]":
        """Return ids of the form ``FILE:OFFSET`` as an Arrow array of strings [n]."""
        import pyarrow.compute as pc  # takes longer than encoding a small file

        offsets = column(self.offsets).cast(pa.string())
        return pc.binary_join_element_wise(constant(str(self.file)), offsets, constant(":"))


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """``n`` rows as columns. A column is None if the field is absent from all rows.

    ``answer_starts`` int64[n] are in code points, or :data:`NO_ANSWER` for rows without an answer.
    """

    ids: "pa.Array[Any]"  # [n] strings
    texts: "pa.Array[Any]"  # [n] strings
    targets: Targets | None = None
    labels: Categories | None = None
    answer_starts: NDArray[np.int64] | None = None
    not_numbers: NotNumbers | None = None
    groups: Mapping[str, Categories] | None = None
    splits: Categories | None = None
    clusters: Categories | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, keep: NDArray[np.int64]) -> "RowColumns":
        """Return the rows at increasing indices (int64[k])."""
        indices = column(keep)
        answers = self.answer_starts
        return RowColumns(
            ids=self.ids.take(indices),
            texts=self.texts.take(indices),
            targets=self.targets and self.targets.take(keep, len(self)),
            labels=self.labels and self.labels.take(keep),
            answer_starts=None if answers is None else answers[keep],
            not_numbers=self.not_numbers and self.not_numbers.take(keep, len(self)),
            groups=self.groups and {name: group.take(keep) for name, group in self.groups.items()},
            splits=self.splits and self.splits.take(keep),
            clusters=self.clusters and self.clusters.take(keep),
        )

    @property
    def more_columns(self) -> set[str]:
        """Names of the optional columns (groups, floors, clusters) that are not empty."""
        groups, floors = self.groups or {}, (self.targets or NO_TARGETS).floors
        columns = {GROUP + name for name, group in groups.items() if (group.codes >= 0).any()}
        if self.clusters is not None and (self.clusters.codes >= 0).any():
            columns.add(CLUSTER)
        return columns | {
            FLOOR + name for name, values in floors.items() if not np.isnan(values).all()
        }

    def without_texts(self) -> "RowColumns":
        """Return a copy without the texts, so that their memory can be freed."""
        return replace(self, texts=strings([]))

    @classmethod
    def from_values(cls, block: bytes, lines: Lines, offsets: RowOffsets) -> "RowColumns | None":
        """Read columns directly from a block of lines, without parsing whole rows.

        The lines must be valid JSON (checked by msgspec), and none may be suspicious
        (:class:`Lines`). Returns None if a value is not in one of the common forms that this fast
        path reads; such rows are decoded one by one instead (:meth:`from_records`).
        """
        fields = _Fields(np.frombuffer(block, np.uint8), lines)
        if fields.has_not_numbers():
            return None
        try:
            return cls(
                ids=fields.ids(offsets),
                texts=fields.texts(),
                targets=fields.targets(),
                labels=fields.categories("label", _WORD),
                answer_starts=fields.answer_starts(),
                groups=fields.groups(),
                splits=fields.categories("split", str | None),
                clusters=fields.categories("cluster", _WORD),
            )
        except _NotPlain:
            return None

    @classmethod
    def from_records(
        cls, records: Sequence[Row], offsets: RowOffsets, texts: "pa.Array[Any] | None" = None
    ) -> "RowColumns":
        """Build columns from records for which :func:`problem_in` returned None.

        ``texts``, if given, replace the texts of the records.
        """
        ids = [
            fallback if record.id in (None, msgspec.UNSET) else str(record.id)
            for record, fallback in zip(records, offsets.ids().to_pylist(), strict=True)
        ]
        answers = [record.answer_start for record in records]
        groups = [record.group or {} for record in records]
        group_names = dict.fromkeys(name for group in groups for name in group)
        return cls(
            ids=strings(ids),
            texts=strings([record.text for record in records]) if texts is None else texts,
            targets=_targets_of(records),
            labels=Categories.some([as_text(record.label) for record in records]),
            answer_starts=np.array(
                [NO_ANSWER if start is None else start for start in answers], np.int64
            )
            if any(start is not None for start in answers)
            else None,
            not_numbers=_not_numbers_of(records),
            groups={
                name: Categories.of([as_text(group.get(name)) for group in groups])
                for name in group_names
            },
            splits=Categories.some([record.split for record in records]),
            clusters=Categories.some([as_text(record.cluster) for record in records]),
        )


class _NotPlain(Exception):
    """Raised if a value is not in one of the forms that the fast path reads."""


class _Fields:
    """Reads the values of a block of plain lines field by field; raises :class:`_NotPlain`."""

    def __init__(self, data: NDArray[np.uint8], lines: Lines) -> None:
        self._data = data
        self._lines = lines
        self._rows = len(lines.starts)

    def _present(self, name: str) -> tuple[NDArray[np.int64], Values]:
        """Return the rows in which a field is present and not null, and its values."""
        field = FIELDS.index(name)
        starts, ends = self._lines.value_starts[field], self._lines.value_ends[field]
        rows = np.flatnonzero(starts >= 0)
        rows = rows[self._data[starts[rows]] != _NULL]
        return rows, Values(self._data, starts[rows], ends[rows])

    def texts(self) -> "pa.Array[Any]":
        """Read the texts; every row must have one."""
        rows, values = self._present("text")
        if len(rows) < self._rows:
            raise _NotPlain
        return _strings(values)

    def ids(self, offsets: RowOffsets) -> "pa.Array[Any]":
        """Read the ids, which must be all strings, all integers, or all absent."""
        rows, values = self._present("id")
        if not len(rows):
            return offsets.ids()
        if len(rows) < self._rows:
            raise _NotPlain
        if (values.first_bytes() == _QUOTE).any():
            return _strings(values)
        numbers = _integers(values)
        if ((numbers == 0) & (values.first_bytes() == _MINUS)).any():  # -0, which is 0
            raise _NotPlain
        return slices(*values)

    def has_not_numbers(self) -> bool:
        """Return whether any row has spans without numbers, which are rare."""
        return len(self._present("not_numbers")[0]) > 0

    def answer_starts(self) -> NDArray[np.int64] | None:
        rows, values = self._present("answer_start")
        if not len(rows):
            return None
        starts = np.full(self._rows, NO_ANSWER)
        starts[rows] = _integers(values)
        return starts

    def categories(self, name: str, kind: Any) -> Categories | None:
        """Read a field with few distinct values; ``kind`` is their type for msgspec."""
        rows, values = self._present(name)
        return _categories(values, kind, rows, self._rows) if len(rows) else None

    def targets(self) -> Targets | None:
        rows, values = self._present("targets")
        if len(self._present("floors")[0]):
            raise _NotPlain  # floors are rare, and rows with floors are long
        if not len(rows):
            return None
        pairs = pairs_in(values)
        if pairs is None:
            raise _NotPlain
        everywhere = np.arange(len(pairs.owners))
        names = _categories(pairs.keys, str, everywhere, len(everywhere))
        return Targets(rows[pairs.owners].astype(np.int32), names, pairs.firsts, pairs.seconds)

    def groups(self) -> dict[str, Categories] | None:
        rows, values = self._present("group")
        if not len(rows):
            return None
        members = members_of(values)
        if members is None:
            raise _NotPlain
        keys, names = distinct(members.keys)
        groups = {}
        for key, name in enumerate(names):
            among = np.flatnonzero(keys == key)
            owners = rows[members.owners[among]]
            groups[msgspec.json.decode(name)] = _categories(
                members.values.take(among), Scalar, owners, self._rows
            )
        return groups


def _strings(values: Values) -> "pa.Array[Any]":
    if (values.first_bytes() != _QUOTE).any() or (plain := unquoted(values)) is None:
        raise _NotPlain
    data, bounds = plain
    return pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))


def _integers(values: Values) -> NDArray[np.int64]:
    if (numbers := integers(values)) is None:
        raise _NotPlain
    return numbers


def _categories(values: Values, kind: Any, rows: NDArray[np.int64], count: int) -> Categories:
    """Encode the values of ``rows`` out of ``count`` rows; each distinct value is decoded once."""
    codes, tokens = distinct(values)
    try:
        names = [as_text(msgspec.json.decode(token, type=kind)) for token in tokens]
    except msgspec.MsgspecError as error:
        raise _NotPlain from error
    merged = Categories.of(names)  # 1 and "1" are one name
    everywhere = np.full(count, -1, np.int32)
    everywhere[rows] = merged.codes[codes]
    return Categories(everywhere, merged.names)


def _not_numbers_of(records: Sequence[Row]) -> NotNumbers | None:
    spans = [
        (row, *span) for row, record in enumerate(records) for span in record.not_numbers or ()
    ]
    if not spans:
        return None
    rows, starts, ends = zip(*spans, strict=True)
    return NotNumbers(np.array(rows, np.int32), np.array(starts), np.array(ends))


def _targets_of(records: Sequence[Row]) -> Targets | None:
    targets = [
        (row, name, *span)
        for row, record in enumerate(records)
        for name, spans in (record.targets or {}).items()
        for span in spans
    ]
    if not targets:
        return None
    owners, names, starts, ends = zip(*targets, strict=True)
    return Targets(
        np.array(owners, np.int32),
        Categories.of(names),
        np.array(starts, np.int64),
        np.array(ends, np.int64),
        _floors(records, len(targets)),
    )


def _floors(records: Sequence[Row], targets: int) -> dict[str, NDArray[np.float64]]:
    """Return the floors of all targets, float64[targets] for each name, with NaN if missing."""
    floors: dict[str, NDArray[np.float64]] = {}
    end = 0
    for record in records:
        for target, spans in (record.targets or {}).items():
            begin, end = end, end + len(spans)
            for name, values in (record.floors or {}).get(target, {}).items():
                column = floors.setdefault(name, np.full(targets, np.nan))
                column[begin:end] = values  # null becomes NaN
    return floors


def problem_in(record: Row) -> str | None:
    """Return the reason for rejecting a row with invalid fields, or None if the row is valid."""
    if record.answer_start is not None and abs(record.answer_start) > _FAR:
        return outside(f"answer_start {record.answer_start}", record.text)
    for span in record.not_numbers or ():
        if max(map(abs, span)) > _FAR:
            return outside(f"not_numbers {list(span)}", record.text)
    for name, spans in (record.targets or {}).items():
        for span in spans:
            if max(map(abs, span)) > _FAR:
                return outside(f"target {name!r} at {list(span)}", record.text)
    for target, floors in (record.floors or {}).items():
        target_spans = (record.targets or {}).get(target)
        if target_spans is None:
            return f"floors contains {target!r}, which is not a target of the row"
        for name, values in floors.items():
            if name in USUAL_BASELINES:
                return (
                    f"a floor cannot be named {name!r}, because every report has a baseline of "
                    "that name. Choose another name"
                )
            if len(values) != len(target_spans):
                return (
                    f"floor {name!r} of target {target!r} must have one number per span (got "
                    f"{len(values)}, expected {len(target_spans)}). Write null for missing values"
                )
            if not all(value is None or isfinite(value) for value in values):
                return f"floor {name!r} of target {target!r} has a number that is not finite"
    return None


def outside(what: str, text: str) -> str:
    """Return the error message for a span or offset outside the text."""
    return f"{what} is outside the text (length {len(text)})"
