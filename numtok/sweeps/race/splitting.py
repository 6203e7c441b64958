"""How rows are split for a race where neither they nor the command say it: by time where rows have
one, so that what is tested comes after what was learnt; else by a hash of the cluster or the id."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from numtok.data.reading.batches import ReadingOptions
from numtok.data.reading.sources import InputFile
from numtok.data.reading.split_rule import place_of
from numtok.data.reading.units import unread
from numtok.encoding.unit import Screening

SHARES = "validation=0.15,test=0.15"
_VALIDATION, _TEST = 0.7, 0.85  # of the rows come before the split begins
_NAMED = re.compile(r"(?:^|[\W_])(?:time|date|datetime|timestamp|year)(?:$|[\W_])", re.I)
_WRITTEN = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ][^,=]*)?)?|[+-]?\d+(?:\.\d+)?")
_LEAST = 10  # different times: fewer are no course of time


def by_time(name: str, times: Mapping[str, int]) -> str | None:
    """The rule of a group or column of that name, whose values come so often each; None where
    these are no times.

    >>> by_time("year", {str(year): 1 for year in range(2000, 2020)})
    'by=year,validation=2014,test=2017'
    """
    unsayable = set(name) & set(",=") or not all(map(_WRITTEN.fullmatch, times))
    if unsayable or len(times) < _LEAST:
        return None
    in_order = sorted(times, key=place_of)
    before = np.cumsum([0, *(times[time] for time in in_order)])[:-1]
    places = [
        int(np.searchsorted(before, share * sum(times.values()))) for share in (_VALIDATION, _TEST)
    ]
    if not 0 < places[0] < places[1] < len(in_order):
        return None
    validation, test = (in_order[place] for place in places)
    return f"by={name},validation={validation},test={test}"


def rule_of_texts(sources: Sequence[InputFile], text_field: str, skip: bool) -> str:
    """By the first group that is a time; not where rows belong to clusters, which stay together.

    Raises DataError for rows that cannot be read, unless they are to be skipped.
    """
    screening = Screening(ReadingOptions(text_field, checked=False), None, skip)
    times: dict[str, Counter[str]] = {}
    batches = (one for unit in unread(sources) for one in screening.batches(unit))
    for place, (batch, _) in enumerate(batches):
        groups = batch.rows.groups or {}
        if batch.rows.clusters is not None or (not place and not any(map(_NAMED.search, groups))):
            return SHARES
        for name in filter(_NAMED.search, groups):
            counts = np.bincount(groups[name].codes + 1, minlength=1 + len(groups[name].names))
            found = dict(zip(groups[name].names, counts[1:].tolist(), strict=True))
            times.setdefault(name, Counter()).update(found)
    return _first_of(by_time(name, counts) for name, counts in times.items()) or SHARES


def rule_of_columns(table: "pa.Table", target: str) -> tuple[str | None, list[str]]:
    """The rule of the first column that is a time, None for none; and the columns of dates, which
    are no features."""
    dates = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name != target and pa.types.is_temporal(column.type)
    ]
    named = [name for name in table.column_names if name != target and _NAMED.search(name)]
    rules = (
        by_time(name, Counter(table[name].cast(pa.string()).to_pylist()))
        for name in dict.fromkeys([*dates, *named])
        if not table[name].null_count
    )
    return _first_of(rules), dates


def _first_of(rules: Iterable[str | None]) -> str | None:
    return next(filter(None, rules), None)
