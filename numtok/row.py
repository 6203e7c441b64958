"""One row of input data, and the column names that stages use for its fields.

Data is JSONL or Parquet with the fields of :class:`Row`; other fields are ignored.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

GROUP = "group_"  # prefix of the columns for groups
FLOOR = "floor_"  # prefix of the columns for ``Row.floors``
TEXT = "text"  # name of the field with the text, by default
CLUSTER = "cluster"  # name of the column for clusters
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class Row(msgspec.Struct):
    """One row of input data: a text, and optionally what to predict and how to group results.

    text
        Text that the model reads, with numbers anywhere in it.
    id
        Identifier, stored as a string. Default: file index and byte offset, such as ``0:4096`` (for
        Parquet, the row index instead of the offset).
    targets
        Numbers to predict. For each target name, spans [start, end] in code points of ``text``,
        each of which covers exactly one number.
    floors
        Predictions of the targets from other sources, such as the previous day's value. For each
        target and source, one number or null per span. Reports use them as baselines, and fitted
        baselines use them as inputs. They are not passed to models.
    label
        Class of the row.
    answer_start
        Code point at which the answer begins, for autoregressive training.
    not_numbers
        Spans of the text, in code points, whose digits are never numbers.
    group
        The row's value in each group, keyed by group name, such as its number of digits, its number
        of operands or its task. Reports show results per value. Null means that the row has no
        value for a group.
    cluster
        Person, day or other unit that the row belongs to. Rows of the same cluster are not
        independent, so the bootstrap resamples them together. A row without a cluster is treated as
        a cluster of its own.
    split
        Split of the row; ``train`` unless the row or the command sets it.
    """

    text: str
    id: str | int | UnsetType | None = UNSET
    targets: dict[str, list[tuple[int, int]]] | None = None
    floors: dict[str, dict[str, list[float | None]]] | None = None
    label: str | int | None = None
    answer_start: int | None = None
    not_numbers: list[tuple[int, int]] | None = None
    group: dict[str, str | int | float | bool | None] | None = None
    cluster: str | int | None = None
    split: str | None = None


#: Fields of a row other than its text.
OPTIONAL = Row.__struct_fields__[1:]


def as_text(value: str | int | float | bool | None) -> str | None:
    """Return a label or group value as the string that is stored in its column.

    >>> as_text(True), as_text(3), as_text(None)
    ('true', '3', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return labels or group values in sorted order: integers by value, then all other strings.

    >>> in_order(["no", "10", "9", "-1"])
    ('-1', '9', '10', 'no')
    """

    def key(name: str) -> tuple[bool, int, str]:
        is_number = _INTEGER.fullmatch(name) is not None
        return not is_number, int(name) if is_number else 0, name

    return tuple(sorted(names, key=key))
