"""Splits of the records of a file, the same for every stage that reads the file."""

import re
from collections.abc import Container
from dataclasses import replace
from operator import itemgetter

import pyarrow as pa

from numtok.data.reading.split_rule import SPLIT_RULE, TRAIN, SplitRule, is_split
from numtok.data.records.dates import date_format, dates_of, iso_texts
from numtok.data.records.reader import Records
from numtok.errors import DataError, UsageError, unknown

SPLIT = "split"  # field with the split of each record


def has_splits(records: Records, other: Container[str | None]) -> bool:
    """Return whether records have a field ``split`` with their splits. A field among ``other`` has
    another use, such as a target."""
    return SPLIT in records.names and SPLIT not in other


def splits_of(
    records: Records, rule: SplitRule | None, other: Container[str | None] = ()
) -> list[str]:
    """Return the split of each record.

    rule
        By a hash of the index of a record, or by the value of a field; None for the field ``split``
        or, without one, ``train``.
    other
        Fields with another use; ``split`` among them does not assign splits.

    Raises UsageError if the field of the rule is unknown, and DataError for an invalid split.
    """
    if rule is None:
        return _own_splits(records) if has_splits(records, other) else [TRAIN] * len(records)
    if rule.by is None:
        return [rule.split_of(str(row)) for row in range(len(records))]
    if rule.by not in records.names:
        known = filter(None, records.names)
        raise UsageError(f"{records.path}: {unknown('field of --split', rule.by, known)}")
    values = in_order(records, rule.by).to_pylist()
    if (form := records.columns[rule.by].date_format) is not None:
        starts = {name: _as_date(start, form) for name, start in rule.starts.items()}
        rule = replace(rule, starts=dict(sorted(starts.items(), key=itemgetter(1))))
    return [rule.split_at(value) for value in values]


def in_order(records: Records, name: str) -> pa.Array:
    """Return the values of a field [n] as strings that sort in order: dates as in ISO 8601."""
    column = records.columns[name]
    if column.date_format is None:
        return records.plain(name)
    return iso_texts(dates_of(records.column(name), column.date_format))


def _as_date(start: str, form: str) -> str:
    """Return the first value of a split as :func:`in_order` returns dates. It is written in the
    format ``form`` of its column, or in any other. Of a year, it is the first day; months and other
    strings are unchanged."""
    if re.fullmatch("[0-9]{4}", start):
        return f"{start}-01-01"
    value = pa.array([start])
    written = date_format(value, like=form)
    return start if written is None else str(iso_texts(dates_of(value, written))[0])


def _own_splits(records: Records) -> list[str]:
    splits = [value or TRAIN for value in records.column(SPLIT).to_pylist()]
    for row, name in enumerate(splits):
        if not is_split(name):
            raise DataError(
                f"{records.where(row)}: invalid split {name!r}. Allowed are {SPLIT_RULE}. If "
                f"the field has no splits: --drop {SPLIT}"
            )
    return splits
