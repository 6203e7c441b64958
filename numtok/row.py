"""A row of data, and the names that its fields have in all stages.

Data are JSONL or Parquet with the fields of :class:`Row`; other fields are ignored.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

GROUP = "group_"  # prefix of the columns that a row's groups become
FLOOR = "floor_"  # prefix of the columns that ``Row.floors`` become
CLUSTER = "cluster"  # the column of clusters
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class Row(msgspec.Struct):
    """One sample.

    text
        What the model reads; any text, numbers anywhere in it.
    id
        Kept as a string. Absent: file index and byte offset (``0:4096``; in Parquet the row).
    targets
        Name to spans [start, end] in code points of ``text``, each exactly one number.
    floors
        What else predicts the targets, say the value of the day before: target to names, each
        with one number for each of its spans, null where there is none. They become baselines
        of reports, and baselines that are fitted are given them; no model sees them.
    label
        A class.
    answer_start
        Code point where the answer begins, for autoregressive training.
    group
        What per-group tables group by: digits, operands, task. Null is the same as not there.
    cluster
        Of whom, or of which day: rows of one cluster are not independent, so the bootstrap draws
        them together. A row without one stands for itself.
    split
        Where the row belongs; ``train`` if neither the row nor the command says.
    """

    text: str
    id: str | int | UnsetType | None = UNSET
    targets: dict[str, list[tuple[int, int]]] | None = None
    floors: dict[str, dict[str, list[float | None]]] | None = None
    label: str | int | None = None
    answer_start: int | None = None
    group: dict[str, str | int | float | bool | None] | None = None
    cluster: str | int | None = None
    split: str | None = None


#: The fields of a row besides its text.
OPTIONAL = Row.__struct_fields__[1:]


def as_text(value: str | int | float | bool | None) -> str | None:
    """A label or group value as the string that its column holds.

    >>> as_text(True), as_text(3), as_text(None)
    ('true', '3', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Labels, or values of a group: integers as numbers, then the others as texts.

    >>> in_order(["no", "10", "9", "-1"])
    ('-1', '9', '10', 'no')
    """

    def key(name: str) -> tuple[bool, int, str]:
        is_number = _INTEGER.fullmatch(name) is not None
        return not is_number, int(name) if is_number else 0, name

    return tuple(sorted(names, key=key))
