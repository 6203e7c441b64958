"""Kinds of columns: numbers, dates, categories, free text or ids.

The kind of a column depends on its values and, for ids, on its name. It is printed before training.
"""

from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.records.dates import date_format
from numtok.data.records.notation import Notation, notation_of
from numtok.names import counted, drop_option

Kind = Literal["number", "date", "category", "text", "id", "constant", "empty"]

#: Codes that name a row: letters then digits, hexadecimal digests, UUIDs.
_CODE = (
    r"^([A-Za-z]{0,6}[-_#]?[0-9]{1,18}|[0-9a-fA-F]{16,64}"
    r"|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$"
)
_ID_NAME = r"(?i)^(|unnamed.*|rownames?|row|index|id|.*[_ ]id|.*Id|uuid|guid|__index_level_.*)$"
_UNIQUE = 0.95  # fraction of different values from which a column identifies rows
_FEW, _MANY = 100, 1_000  # a category always has at most _FEW values, and never more than _MANY
_REPEATED = 0.5  # in between, it has at most this fraction of different values
_CODE_DIGITS = 10  # digits from which different integers may be codes, if all have as many
_LEAST_ROWS, _YEARS = 20, 300  # rows of a numbering from 0 or 1; rows of any other, more than years
_LONG = 40  # characters per value from which strings are text
_WORDS = 3.0  # words per value from which strings are text


class ColumnKind(NamedTuple):
    """Kind of a column, and how its values are written.

    different
        Number of different values.
    missing
        Number of missing values.
    notation
        Notation of the numbers; None for other columns.
    numbered
        True for integers that probably name rows: they differ in almost every row, and are
        consecutive or have many digits.
    rounded
        True if integers beyond 2^53 would be rounded.
    date_format
        Format of the dates, as :func:`~numtok.data.records.dates.date_format` returns it; None for
        other columns.
    """

    name: str
    kind: Kind
    different: int
    missing: int
    notation: Notation | None = None
    date_format: str | None = None
    numbered: bool = False
    rounded: bool = False

    @property
    def is_feature(self) -> bool:
        """True if the column can be an input of a table model."""
        return self.kind in ("number", "date", "category")

    @property
    def varies(self) -> bool:
        """False if the column has no values, or the same value in every row."""
        return self.kind not in ("empty", "constant")

    @property
    def reason(self) -> str:
        """Why the column has this kind, in words."""
        values = counted(self.different, "different value")
        details = {
            "number": self._number_reason,
            "date": f"written as {self.date_format}",
            "id": f"{values}: names rows",
            "constant": "the same value in every row",
            "empty": "no values",
        }
        reason = details.get(self.kind, values)
        if self.missing and self.kind != "empty":
            reason += f"{', ' if reason else ''}{self.missing:,} missing"
        return reason

    @property
    def advice(self) -> str:
        """Advice for a column that is read, in words; can be empty."""
        names_rows = self.kind == "id" or (self.kind == "number" and self.numbered)
        return f"consider {drop_option(self.name)}" if names_rows else ""

    @property
    def _number_reason(self) -> str:
        parts = [self.notation.description] if self.notation and self.notation.description else []
        if self.numbered:
            parts.append("may name rows")
        if self.rounded:
            parts.append("integers beyond 2^53 are rounded")
        return ", ".join(parts)


def index_reason(name: str, position: int) -> str | None:
    """Return why a column is the row index of a pandas frame, by its name; None for
    other columns. ``position`` counts from 0."""
    if not name:
        return f"column {position + 1} has no name"
    return f"{name!r} is a pandas index" if name.startswith("__index_level_") else None


def column_of(name: str, values: "pa.Array[Any]", decimal: str = ".") -> ColumnKind:
    """Decide the kind of a column [n] of strings.

    decimal
        Decimal mark of the file.

    >>> column_of("released", pa.array(["Jun 12 1998", None, "Aug 07 1998"])).date_format
    '%b %d %Y'
    >>> column_of("note", pa.array(["works as described", "the screen arrived broken"])).kind
    'text'
    """
    present = values.drop_null()
    different, missing = pc.count_distinct(present).as_py(), values.null_count
    if not len(present):
        return ColumnKind(name, "empty", 0, missing)
    kind: Kind
    unique = len(present) > 1 and different >= _UNIQUE * len(present)
    named = pc.match_substring_regex(pa.array([name]), _ID_NAME)[0].as_py()
    if (notation := notation_of(present, decimal)) is not None:
        kind = "number"
        plain = notation.plain(present)
        numbered, rounded = unique and _is_numbering(plain), _is_rounded(plain)
        if different == 1 and len(present) > 1:
            kind = "constant"
        elif (numbered and rounded) or (unique and named and _are_codes(present)):
            kind = "id"
        return ColumnKind(
            name, kind, different, missing, notation, numbered=numbered, rounded=rounded
        )
    if (form := date_format(present)) is not None:
        return ColumnKind(name, "date", different, missing, date_format=form)
    if different == 1 and len(present) > 1:
        return ColumnKind(name, "constant", different, missing)
    if unique and (named or _are_codes(present)):
        return ColumnKind(name, "id", different, missing)
    return ColumnKind(
        name, "text" if _is_text(present, different) else "category", different, missing
    )


def _are_codes(values: "pa.Array[Any]") -> bool:
    return bool(pc.all(pc.match_substring_regex(values, _CODE)).as_py())


def _is_numbering(values: "pa.Array[Any]") -> bool:
    """Return whether different numbers [n] in the default notation are integers of many digits, or
    consecutive integers. Years may be consecutive too, so few rows must begin at 0 or 1."""
    if not pc.all(pc.match_substring_regex(values, r"^[0-9]+$")).as_py():
        return False
    lengths = pc.min_max(pc.utf8_length(values)).as_py()
    if lengths["min"] >= _CODE_DIGITS:
        return True
    if lengths["max"] >= _CODE_DIGITS or len(values) < _LEAST_ROWS:
        return False
    ends = pc.min_max(values.cast(pa.int64())).as_py()
    is_dense = len(values) >= _UNIQUE * (ends["max"] - ends["min"] + 1)
    return is_dense and (ends["min"] <= 1 or len(values) > _YEARS)


def _is_rounded(values: "pa.Array[Any]") -> bool:
    """Return whether float64 rounds an integer among numbers [n] in the default notation."""
    is_long = pc.match_substring_regex(values, "^[+-]?[0-9]{16,300}$")
    return any(int(float(text)) != int(text) for text in values.filter(is_long).to_pylist())


def _is_text(values: "pa.Array[Any]", different: int) -> bool:
    """Return whether strings [n] without missing values are free text or codes rather than names
    of categories."""
    if different > max(_FEW, min(_MANY, _REPEATED * len(values))):
        return True
    repeated = different <= min(_FEW, _REPEATED * len(values))
    length = pc.mean(pc.utf8_length(values)).as_py()
    words = pc.mean(pc.add(pc.count_substring(pc.utf8_trim_whitespace(values), " "), 1)).as_py()
    return not repeated and bool(length >= _LONG or words >= _WORDS)
