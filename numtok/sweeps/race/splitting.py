"""The default split of a race: by time if rows have a time, so that test rows come after training
rows; otherwise by a hash of the cluster or the ID."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numtok.data.reading.batches import ReadingOptions
from numtok.data.reading.sources import InputFile
from numtok.data.reading.split_rule import sort_key
from numtok.data.reading.units import unread
from numtok.data.records.reader import Records
from numtok.data.records.splits import in_order
from numtok.encoding.unit import Screening
from numtok.names import counted

SHARES = "validation=0.12,calibration=0.08,test=0.15"
#: Fraction of the rows before the start of each split, for as many splits as possible.
_STARTS = (
    {"validation": 0.65, "calibration": 0.77, "test": 0.85},
    {"validation": 0.7, "test": 0.85},
)
_NAMED = re.compile(r"(?:^|[\W_])(?:time|date|datetime|timestamp|year)(?:$|[\W_])", re.I)
_WRITTEN = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ][^,=]*)?)?|[+-]?\d+(?:\.\d+)?")
_SHOWN = 40  # characters of a value in a note
_LEAST = 10  # fewest different times


class TimeSplit(NamedTuple):
    """A split by time, if possible.

    rule
        The split in the syntax of ``--split``; None if rows are not split by time.
    refusals
        Reasons why columns or groups whose names suggest times are not used.
    """

    rule: str | None
    refusals: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Notes that tell the user how rows are split by time, or why they are not."""
        if self.rule is not None:
            return [
                f"Rows are split by time (--split {self.rule}): the test rows come after the "
                "training rows. If that column is not the time of the rows, pass --split "
                f"{SHARES}, which splits at random."
            ]
        if not self.refusals:
            return []
        return [
            f"Rows are not split by time: {'; '.join(self.refusals)}. To choose the split: --split "
            "by=NAME,validation=FIRST,test=FIRST."
        ]


def by_time(name: str, times: Mapping[str, int]) -> TimeSplit:
    """Return a split by the values of a group or column. ``times`` maps each value to its number of
    rows.

    >>> by_time("year", {str(year): 1 for year in range(2000, 2020)}).rule
    'by=year,validation=2013,calibration=2016,test=2017'
    >>> by_time("year", {"2000": 9, "2001": 8}).refusals
    ("'year' has only 2 different values (at least 10 are needed)",)
    """
    if set(name) & set(",="):
        return _refused(name, "cannot be written in --split")
    if (other := next((time for time in times if not _WRITTEN.fullmatch(time)), None)) is not None:
        return _refused(name, f"has the value {other[:_SHOWN]!r}, which is not a date or a number")
    if len(times) < _LEAST:
        count = counted(len(times), "different value")
        return _refused(name, f"has only {count} (at least {_LEAST} are needed)")
    in_order = sorted(times, key=sort_key)
    before = np.cumsum([0, *(times[time] for time in in_order)])[:-1]
    for shares in _STARTS:
        starts = np.searchsorted(before, np.multiply([*shares.values()], sum(times.values())))
        edges = [0, *starts.tolist(), len(in_order)]
        if all(edge < following for edge, following in pairwise(edges)):
            first = (
                f"{split}={in_order[start]}" for split, start in zip(shares, starts, strict=True)
            )
            return TimeSplit(f"by={name},{','.join(first)}")
    return _refused(name, "has too many rows in its last values for a validation and a test split")


def _refused(name: str, why: str) -> TimeSplit:
    return TimeSplit(None, (f"{name!r} {why}",))


def split_of_texts(sources: Sequence[InputFile], text_field: str, skip: bool) -> TimeSplit:
    """Return a split of texts by time, using the first group whose values are times. Rows are not
    split by time if they belong to clusters, because clusters must stay together.

    Raises DataError for rows that cannot be read, unless ``skip`` is True.
    """
    screening = Screening(ReadingOptions(text_field, checked=False), None, skip)
    times: dict[str, Counter[str]] = {}
    batches = (batch for unit in unread(sources) for batch in screening.batches(unit))
    for index, (batch, _) in enumerate(batches):
        groups = batch.rows.groups or {}
        named = list(filter(_NAMED.search, groups))
        if batch.rows.clusters is not None and (named or times):
            name, *_ = [*times, *named]
            return _refused(name, "may differ within a cluster, whose rows stay together")
        if batch.rows.clusters is not None or (not index and not named):
            return TimeSplit(None)
        for name in named:
            counts = np.bincount(groups[name].codes + 1, minlength=1 + len(groups[name].names))
            rows_by_time = dict(zip(groups[name].names, counts[1:].tolist(), strict=True))
            times.setdefault(name, Counter()).update(rows_by_time)
    return _first_of(by_time(name, counts) for name, counts in times.items())


def split_of_records(records: Records, target: str) -> TimeSplit:
    """Return a split by the first field whose values are dates, or whose name suggests times."""
    fields = [column for column in records.columns.values() if column.name != target]
    dates = [column.name for column in fields if column.kind == "date"]
    named = [column.name for column in fields if _NAMED.search(column.name)]
    return _first_of(_by_field(records, name) for name in dict.fromkeys([*dates, *named]))


def _by_field(records: Records, name: str) -> TimeSplit:
    if missing := records.columns[name].missing:
        return _refused(name, f"is missing in {counted(missing, 'row')}")
    return by_time(name, Counter(in_order(records, name).to_pylist()))


def _first_of(splits: Iterable[TimeSplit]) -> TimeSplit:
    refusals: list[str] = []
    for split in splits:
        if split.rule is not None:
            return split
        refusals += split.refusals
    return TimeSplit(None, tuple(refusals))
