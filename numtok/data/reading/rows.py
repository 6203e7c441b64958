"""Rows of data as columns, read from lines of JSON without an object for each, or from records.

Most data is of one plain form, and then a million short rows are read in a
second: :meth:`RowColumns.of_values`. Whatever is not of that form goes through
``records.Row``, row by row: :meth:`RowColumns.of_records`. Both give the same columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.reading.arrow import column, constant, slices, strings
from numtok.data.reading.lines import FIELDS, Lines
from numtok.data.reading.nested_values import members_of, pairs_in
from numtok.data.reading.values import Values, distinct, integers, unquoted
from numtok.records import CLUSTER, FLOOR, GROUP, USUAL_BASELINES, Row, Scalar, as_text

NO_ANSWER = np.iinfo(np.int64).min  # where a row has no answer_start
_FAR = 10**18  # code points; no place in any text is further out
_QUOTE, _NULL, _MINUS = ord('"'), ord("n"), ord("-")
_WORD = str | int | None  # what a label or a cluster may be


class Categories(NamedTuple):
    """Strings that repeat, or none, for each of ``n`` rows or targets."""

    codes: NDArray[np.int32]  # [n] index among the names, -1 for none
    names: list[str]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> "Categories":
        """The names are in the order in which they first appear."""
        known: dict[str, int] = {}
        codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
        return cls(np.array(codes, np.int32), list(known))

    @classmethod
    def some(cls, values: Sequence[str | None]) -> "Categories | None":
        """Likewise; None where all values are."""
        found = cls.of(values)
        return found if found.names else None

    def at(self, index: int) -> str | None:
        """One of them."""
        code = self.codes[index]
        return None if code < 0 else self.names[code]

    def take(self, keep: NDArray[np.int64] | NDArray[np.bool_]) -> "Categories":
        """Those at some indices (int64[k]), or where a mask (bool[n]) has them."""
        return Categories(self.codes[keep], self.names)

    def filled(self, name: str) -> "Categories":
        """With this name for none."""
        names = self.names if name in self.names else [*self.names, name]
        return Categories(np.where(self.codes < 0, np.int32(names.index(name)), self.codes), names)

    def places(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Each name that there is, in order, and where it is: indices, int64[k], rising."""
        for name in sorted(self.names):
            if len(places := np.flatnonzero(self.codes == self.names.index(name))):
                yield name, places

    def column(self) -> "pa.Array[Any]":
        """Strings [n], null for none."""
        if not self.names:
            return pa.nulls(len(self.codes), pa.string())
        codes = column(self.codes, self.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, strings(self.names)).dictionary_decode()


class Targets(NamedTuple):
    """The targets of some rows as the data says them, ``k`` in all, in the order of the rows."""

    rows: NDArray[np.int32]  # [k] rising
    names: Categories  # [k]
    starts: NDArray[np.int64]  # [k] in code points of the row's text
    ends: NDArray[np.int64]  # [k]
    floors: Mapping[str, NDArray[np.float64]] = {}  # [k] by name, NaN where there is none

    def take(self, keep: NDArray[np.int64], rows: int) -> "Targets":
        """Those of some of ``rows`` rows, by their indices (int64[kept rows])."""
        place = np.full(rows, -1, np.int32)
        place[keep] = np.arange(len(keep))
        places = place[self.rows]
        kept = places >= 0
        return Targets(
            places[kept],
            self.names.take(kept),
            self.starts[kept],
            self.ends[kept],
            {name: values[kept] for name, values in self.floors.items()},
        )


NO_TARGETS = Targets(
    np.empty(0, np.int32), Categories(np.empty(0, np.int32), []), *np.empty((2, 0), np.int64)
)


class Places(NamedTuple):
    """Where ``n`` rows stand; what they are called that have no id: ``0:4096``."""

    file: int
    offsets: NDArray[np.int64]  # [n]

    def ids(self) -> "pa.Array[Any]":
        """Strings [n]."""
        offsets = column(self.offsets).cast(pa.string())
        return pc.binary_join_element_wise(constant(str(self.file)), offsets, constant(":"))


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """``n`` rows, field by field; None for a field that none of them has.

    ``answer_starts`` are code points, :data:`NO_ANSWER` for a row without one.
    """

    ids: "pa.Array[Any]"  # [n] strings
    texts: "pa.Array[Any]"  # [n] strings
    targets: Targets | None = None
    labels: Categories | None = None
    answer_starts: NDArray[np.int64] | None = None
    groups: Mapping[str, Categories] | None = None
    splits: Categories | None = None
    clusters: Categories | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, keep: NDArray[np.int64]) -> "RowColumns":
        """The rows at some indices (int64[k]), which rise."""
        indices = column(keep)
        answers = self.answer_starts
        return RowColumns(
            ids=self.ids.take(indices),
            texts=self.texts.take(indices),
            targets=self.targets and self.targets.take(keep, len(self)),
            labels=self.labels and self.labels.take(keep),
            answer_starts=None if answers is None else answers[keep],
            groups=self.groups and {name: group.take(keep) for name, group in self.groups.items()},
            splits=self.splits and self.splits.take(keep),
            clusters=self.clusters and self.clusters.take(keep),
        )

    @property
    def more_columns(self) -> set[str]:
        """The columns that only some data has: of groups, floors and clusters with a value
        here."""
        groups, floors = self.groups or {}, (self.targets or NO_TARGETS).floors
        found = {GROUP + name for name, group in groups.items() if (group.codes >= 0).any()}
        if self.clusters is not None and (self.clusters.codes >= 0).any():
            found.add(CLUSTER)
        return found | {
            FLOOR + name for name, values in floors.items() if not np.isnan(values).all()
        }

    def without_texts(self) -> "RowColumns":
        """The rows with no text, so that its memory can be given back."""
        return replace(self, texts=strings([]))

    @classmethod
    def of_values(cls, block: bytes, lines: Lines, places: "Places") -> "RowColumns | None":
        """From lines of which msgspec has said that they are JSON and ``lines.suspicious`` that
        they are one object each; None if one of them is not of the plain form."""
        fields = _Fields(np.frombuffer(block, np.uint8), lines)
        try:
            return cls(
                ids=fields.ids(places),
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
    def of_records(
        cls, records: Sequence[Row], places: "Places", texts: "pa.Array[Any] | None" = None
    ) -> "RowColumns":
        """From records that :func:`problem_in` finds nothing in; with ``texts``, those instead of
        the texts of the records."""
        ids = [
            place if record.id in (None, msgspec.UNSET) else str(record.id)
            for record, place in zip(records, places.ids().to_pylist(), strict=True)
        ]
        answers = [record.answer_start for record in records]
        groups = [record.group or {} for record in records]
        found = dict.fromkeys(name for group in groups for name in group)
        return cls(
            ids=strings(ids),
            texts=strings([record.text for record in records]) if texts is None else texts,
            targets=_targets_of(records),
            labels=Categories.some([as_text(record.label) for record in records]),
            answer_starts=np.array([NO_ANSWER if one is None else one for one in answers], np.int64)
            if any(one is not None for one in answers)
            else None,
            groups={
                name: Categories.of([as_text(group.get(name)) for group in groups])
                for name in found
            },
            splits=Categories.some([record.split for record in records]),
            clusters=Categories.some([as_text(record.cluster) for record in records]),
        )


class _NotPlain(Exception):
    """A value has another form than nearly all data has."""


class _Fields:
    """The values of a block of plain lines, field by field; raises :class:`_NotPlain`."""

    def __init__(self, data: NDArray[np.uint8], lines: Lines) -> None:
        self._data = data
        self._lines = lines
        self._rows = len(lines.starts)

    def _given(self, name: str) -> tuple[NDArray[np.int64], Values]:
        """The rows in which a field is there and not null, and its values there."""
        field = FIELDS.index(name)
        starts, ends = self._lines.value_starts[field], self._lines.value_ends[field]
        rows = np.flatnonzero(starts >= 0)
        rows = rows[self._data[starts[rows]] != _NULL]
        return rows, Values(self._data, starts[rows], ends[rows])

    def texts(self) -> "pa.Array[Any]":
        """A string in every row."""
        rows, values = self._given("text")
        if len(rows) < self._rows:
            raise _NotPlain
        return _strings(values)

    def ids(self, places: Places) -> "pa.Array[Any]":
        """All strings, all integers, or none at all."""
        rows, values = self._given("id")
        if not len(rows):
            return places.ids()
        if len(rows) < self._rows:
            raise _NotPlain
        if (values.first_bytes() == _QUOTE).any():
            return _strings(values)
        numbers = _integers(values)
        if ((numbers == 0) & (values.first_bytes() == _MINUS)).any():  # -0, which is 0
            raise _NotPlain
        return slices(*values)

    def answer_starts(self) -> NDArray[np.int64] | None:
        rows, values = self._given("answer_start")
        if not len(rows):
            return None
        starts = np.full(self._rows, NO_ANSWER)
        starts[rows] = _integers(values)
        return starts

    def categories(self, name: str, kind: Any) -> Categories | None:
        """A field of few values, of a type that msgspec knows."""
        rows, values = self._given(name)
        return _categories(values, kind, rows, self._rows) if len(rows) else None

    def targets(self) -> Targets | None:
        rows, values = self._given("targets")
        if len(self._given("floors")[0]):
            raise _NotPlain  # few data has them, and its rows are long
        if not len(rows):
            return None
        pairs = pairs_in(values)
        if pairs is None:
            raise _NotPlain
        everywhere = np.arange(len(pairs.owners))
        names = _categories(pairs.keys, str, everywhere, len(everywhere))
        return Targets(rows[pairs.owners].astype(np.int32), names, pairs.firsts, pairs.seconds)

    def groups(self) -> dict[str, Categories] | None:
        rows, values = self._given("group")
        if not len(rows):
            return None
        members = members_of(values)
        if members is None:
            raise _NotPlain
        keys, names = distinct(members.keys)
        found = {}
        for key, name in enumerate(names):
            among = np.flatnonzero(keys == key)
            owners = rows[members.owners[among]]
            found[msgspec.json.decode(name)] = _categories(
                members.values.take(among), Scalar, owners, self._rows
            )
        return found


def _strings(values: Values) -> "pa.Array[Any]":
    if (values.first_bytes() != _QUOTE).any() or (plain := unquoted(values)) is None:
        raise _NotPlain
    data, bounds = plain
    return pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))


def _integers(values: Values) -> NDArray[np.int64]:
    if (found := integers(values)) is None:
        raise _NotPlain
    return found


def _categories(values: Values, kind: Any, rows: NDArray[np.int64], count: int) -> Categories:
    """What ``rows`` of ``count`` have; others have none. Each distinct value is decoded once."""
    codes, tokens = distinct(values)
    try:
        names = [as_text(msgspec.json.decode(token, type=kind)) for token in tokens]
    except msgspec.MsgspecError as error:
        raise _NotPlain from error
    merged = Categories.of(names)  # 1 and "1" are one name
    everywhere = np.full(count, -1, np.int32)
    everywhere[rows] = merged.codes[codes]
    return Categories(everywhere, merged.names)


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
    """What records say of their targets beside them, in the order of these."""
    found: dict[str, NDArray[np.float64]] = {}
    end = 0
    for record in records:
        for target, spans in (record.targets or {}).items():
            begin, end = end, end + len(spans)
            for name, values in (record.floors or {}).get(target, {}).items():
                column = found.setdefault(name, np.full(targets, np.nan))
                column[begin:end] = values  # null becomes NaN
    return found


def problem_in(record: Row) -> str | None:
    """What is wrong with a record, as far as its own fields tell; None for nothing."""
    if record.answer_start is not None and abs(record.answer_start) > _FAR:
        return outside(f"answer_start {record.answer_start}", record.text)
    for name, places in (record.targets or {}).items():
        for span in places:
            if max(map(abs, span)) > _FAR:
                return outside(f"target {name!r} at {list(span)}", record.text)
    for target, floors in (record.floors or {}).items():
        spans = (record.targets or {}).get(target)
        if spans is None:
            return f"floors are of {target!r}, which is no target of the row"
        for name, values in floors.items():
            if name in USUAL_BASELINES:
                return (
                    f"a floor cannot be called {name!r}, as one of those that every "
                    "report has; give it another name"
                )
            if len(values) != len(spans):
                return (
                    f"floor {name!r} of target {target!r} has {len(values)} numbers for "
                    f"{len(spans)} spans; write one for each, null where there is none"
                )
            if not all(value is None or isfinite(value) for value in values):
                return f"floor {name!r} of target {target!r} has a number that is not finite"
    return None


def outside(what: str, text: str) -> str:
    """The problem of a place that the text does not have."""
    return f"{what} is outside the text, which has {len(text)} characters (code points)"
