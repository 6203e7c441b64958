"""Notations of the numbers in a column: decimal mark, thousands separators, currency signs.

A column has one notation, which must read all its values. Numbers are rewritten to the default
notation of numtok without a change of their digits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.records.row_template import NotationName

_EXPONENT = r"([eE][+-]?[0-9]+)?"
_SPACES = r"\x{20}\x{a0}\x{202f}"
_APOSTROPHES = _SPACES + "'"
_DOT = r"\."
_FIRST = 100  # values that a notation must read before it is tried on the whole column


class Notation(NamedTuple):
    """A way of writing numbers.

    name
        Name in stored files.
    pattern
        Regular expression (RE2) of a number in this notation, without surrounding spaces.
    remove
        Regular expression of the characters to remove, such as thousands separators.
    decimal
        Decimal mark.
    description
        Description for messages; empty for the default notation.
    """

    name: NotationName
    pattern: str
    remove: str
    decimal: str
    description: str

    def matches(self, values: "pa.Array[Any]") -> "pa.Array[Any]":
        """Return a mask [n] of the strings that are numbers in this notation; null if missing."""
        return pc.match_substring_regex(values, rf"^\s*{self.pattern}\s*$")

    def reads(self, values: "pa.Array[Any]") -> bool:
        """Return whether all strings [n] are numbers in this notation, ignoring missing ones."""
        first = values[:_FIRST]
        return all(pc.all(self.matches(each)).as_py() is not False for each in (first, values))

    def plain(self, values: "pa.Array[Any]") -> "pa.Array[Any]":
        """Return numbers [n] in the default notation; strings that are not numbers become null."""
        plain = pc.utf8_trim_whitespace(pc.if_else(self.matches(values), values, None))
        if self.remove:
            plain = pc.replace_substring_regex(plain, self.remove, "")
        return plain if self.decimal == "." else pc.replace_substring(plain, self.decimal, ".")


def _grouped(separator: str, decimal: str) -> str:
    return rf"[+-]?[0-9]{{1,3}}([{separator}][0-9]{{3}})+({decimal}[0-9]*)?"


def _plain(decimal: str) -> str:
    return rf"[+-]?([0-9]+{decimal}?[0-9]*|{decimal}[0-9]+){_EXPONENT}"


_POINT, _COMMA = _plain(_DOT), _plain(",")
DEFAULT = Notation("default", _POINT, "", ".", "")
_THOUSANDS = f"({_grouped(',', _DOT)}|{_POINT})"
_COMMA_THOUSANDS = f"({_grouped(_DOT + _SPACES, ',')}|{_COMMA})"
_CURRENCY = r"[$\x{20ac}\x{a3}\x{a5}]"
_GROUPS = rf"[0-9][,{_APOSTROPHES}][0-9]"  # digits with a separator that is not a point


def _priced(number: str) -> str:
    """Return the pattern of a number with a currency sign before or after it, or with none."""
    space, unsigned = rf"[\s{_SPACES}]*", number.replace("[+-]?", "")
    before = rf"([+-]?{_CURRENCY}{space}|{_CURRENCY}{space}[+-])"
    return rf"({before}{unsigned}|{number}({space}{_CURRENCY})?)"


#: Notations in the order in which they are tried on the columns of a file with decimal points.
WITH_POINT = (
    DEFAULT,
    Notation("thousands", _THOUSANDS, ",", ".", "thousands separated by commas"),
    Notation(
        "currency",
        _priced(_THOUSANDS),
        rf"[,\s{_SPACES}]|{_CURRENCY}",
        ".",
        "currency signs",
    ),
    Notation(
        "spaces",
        f"({_grouped(_APOSTROPHES, _DOT)}|{_POINT})",
        f"[{_APOSTROPHES}]",
        ".",
        "thousands separated by spaces or apostrophes",
    ),
)
#: The same for files with decimal commas.
WITH_COMMA = (
    Notation("integers", rf"[+-]?[0-9]+{_EXPONENT}", "", ".", ""),
    Notation("comma", _COMMA, "", ",", "decimal commas"),
    Notation(
        "comma-thousands",
        _COMMA_THOUSANDS,
        rf"[.{_SPACES}]",
        ",",
        "decimal commas and thousands separators",
    ),
    Notation(
        "comma-currency",
        _priced(_COMMA_THOUSANDS),
        rf"[.\s{_SPACES}]|{_CURRENCY}",
        ",",
        "decimal commas and currency signs",
    ),
    DEFAULT,
)
NOTATIONS = {each.name: each for each in (*WITH_POINT, *WITH_COMMA)}


def plain_numbers(values: "pa.Array[Any]", notations: Sequence[Notation]) -> "pa.Array[Any]":
    """Return numbers [n] in the default notation, each read in the first notation that reads it;
    other strings become null.

    >>> plain_numbers(pa.array(["1.234", "7,50", "-"]), WITH_COMMA).to_pylist()
    ['1234', '7.50', None]
    """
    return pc.coalesce(*(each.plain(values) for each in notations))


def notation_of(values: "pa.Array[Any]", decimal: str = ".") -> Notation | None:
    """Return the first notation in which all strings [n] are numbers, ignoring missing ones. The
    result is None if no notation reads them or if all are missing.

    >>> column = pa.array(["1,234.50", "7", None])
    >>> notation_of(column).description, notation_of(column).plain(column).to_pylist()
    ('thousands separated by commas', ['1234.50', '7', None])
    """
    if values.null_count == len(values):
        return None
    notations = WITH_COMMA if decimal == "," else WITH_POINT
    return next((each for each in notations if each.reads(values)), None)


def decimal_mark(columns: "Sequence[pa.Array[Any]]", usual: str | None = None) -> str:
    """Return the decimal mark of a file, given its columns of strings [n]: the one with which more
    columns are numbers.

    If both marks are possible, the result is ``usual`` or, if that is None, the one without
    thousands separators.

    >>> columns = [pa.array(["1.500", "8.250"])]
    >>> decimal_mark(columns), decimal_mark(columns, ","), decimal_mark([pa.array(["1,5"])])
    ('.', ',', ',')
    """
    point, comma = (
        [column for column in columns if notation_of(column, mark) is not None] for mark in ".,"
    )
    if len(comma) != len(point):
        return "," if len(comma) > len(point) else "."
    grouped = (pc.any(pc.match_substring_regex(column, _GROUPS)).as_py() for column in point)
    return usual or ("," if any(grouped) else ".")


def usual_notation(values: "pa.Array[Any]", decimal: str = ".") -> Notation | None:
    """Return the notation in which most strings [n] are numbers; None if none reads any of them."""
    counts = {
        each: pc.sum(each.matches(values)).as_py() or 0
        for each in (WITH_COMMA if decimal == "," else WITH_POINT)
    }
    best = max(counts, key=lambda each: counts[each])
    return best if counts[best] else None
