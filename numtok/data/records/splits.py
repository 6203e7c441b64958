"""Splits of the records of a file, the same for every stage that reads the file."""

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.reading.split_rule import SPLIT_RULE, TRAIN, SplitRule, is_split
from numtok.data.records.columns import dates_of
from numtok.data.records.reader import Records
from numtok.errors import DataError, UsageError, unknown

SPLIT = "split"  # field with the split of each record


def splits_of(records: Records, rule: SplitRule | None) -> list[str]:
    """Return the split of each record.

    rule
        By a hash of the index of a record, or by the value of a field; None for the field ``split``
        or, without one, ``train``.

    Raises UsageError if the field of the rule is unknown, and DataError for an invalid split.
    """
    if rule is None:
        return _own_splits(records)
    if rule.by is None:
        return [rule.split_of(str(row)) for row in range(len(records))]
    if rule.by not in records.names:
        known = filter(None, records.names)
        raise UsageError(f"{records.path}: {unknown('field of --split', rule.by, known)}")
    return [rule.split_at(value) for value in in_order(records, rule.by).to_pylist()]


def in_order(records: Records, name: str) -> "pa.Array":
    """Return the values of a field [n] as strings that sort in order: dates as in ISO 8601."""
    column = records.columns[name]
    if column.date_format is None:
        return records.plain(name)
    dates = dates_of(records.column(name), column.date_format)
    midnight = pc.equal(dates, pc.floor_temporal(dates, unit="day"))
    form = "%Y-%m-%d" if pc.all(midnight).as_py() else "%Y-%m-%dT%H:%M:%S"
    return pc.strftime(dates, format=form)


def _own_splits(records: Records) -> list[str]:
    if SPLIT not in records.names:
        return [TRAIN] * len(records)
    splits = [value or TRAIN for value in records.column(SPLIT).to_pylist()]
    for row, name in enumerate(splits):
        if not is_split(name):
            raise DataError(
                f"{records.where(row)}: invalid split {name!r}. Allowed are {SPLIT_RULE}"
            )
    return splits
