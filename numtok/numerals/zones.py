"""Zones: parts of a text whose digits are never numbers, such as dates and ids.

A zone is given by a name or by a regular expression. A number that overlaps a zone is text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from numtok.arrays import Bools, Int32s, Ints, UInt8s
from numtok.errors import UsageError, unknown
from numtok.numerals.suffixes import SUFFIXES

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_WORDS = re.compile(r"[A-Za-z]{2,}|[A-Za-z]+(?:[-_, ]+[A-Za-z]+)+")
_ATOM = r"(?:\[[^\]\s]+\]|Br|Cl|[BCNOPSFIbcnops])"

#: Regular expressions of the zones that have a name.
NAMED = {
    "ids": r"(?<!\w)(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|(?=[0-9a-f]*[a-f])[0-9a-f]{8,}|[A-Z]{1,5}[-_]?[0-9]{3,}|#[0-9]+|0[0-9]{2,}(?![.,][0-9]))"
    r"(?!\w)",
    "dates": r"(?<![0-9])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])|[0-9]{4}/[0-9]{2}/[0-9]{2}(?![0-9])"
    r"|[0-9]{1,2}([./-])[0-9]{1,2}\1(?:[0-9]{4}|[0-9]{2})(?![0-9])"
    r"|[0-9]{4}年(?:[0-9]{1,2}月(?:[0-9]{1,2}日)?)?|[0-9]{1,2}月[0-9]{1,2}日"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th|\.)? {_MONTHS}\.?(?:,? [0-9]{{4}})?(?![0-9]))"
    rf"|(?<!\w){_MONTHS}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? [0-9]{{4}})?(?![0-9])",
    "times": r"(?<![0-9:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?: ?[AaPp]\.?[Mm]\b|Z|[-+][0-9]{2}:?[0-9]{2})?(?![0-9:])",
    "smiles": rf"(?<!\S)(?=\S*[\[=#(])(?=\S*[A-Za-z])(?:{_ATOM}|[-=#$:/\\.()%0-9])+(?!\S)",
    "urls": r"(?:https?://|www\.)\S+|\S+@\S+\.\w+|(?<![0-9.])[0-9]+(?:\.[0-9]+){3}(?::[0-9]+)?",
    "versions": r"(?<![0-9.])v?[0-9]+(?:\.[0-9]+){2,}[-+.\w]*|(?<!\w)v[0-9]+(?:\.[0-9]+)*"
    r"|(?i:(?<!\w)(?:version|release|build|rev\.?) ?[0-9]+(?:\.[0-9]+)*)",
}


@cache
def _compiled(zone: str) -> re.Pattern[str]:
    return re.compile(NAMED.get(zone, zone))


def check_zone(zone: str) -> None:
    """Raise UsageError unless a zone is a name, or a valid regular expression that is more than
    words. Words never overlap a number, so they are misspelled names."""
    if not zone:
        raise UsageError(f"--not-numbers needs a name ({', '.join(NAMED)}) or a regular expression")
    try:
        _compiled(zone)
    except re.error as error:
        raise UsageError(
            f"--not-numbers {zone!r} is neither a name ({', '.join(NAMED)}) nor a regular "
            f"expression ({error}). Escape special characters, as in '\\('"
        ) from None
    if zone not in NAMED and all(map(_is_outside_numbers, zone.split("|"))):
        hint = (
            "For several names, repeat the option"
            if re.search("[|, ]", zone)
            else "A regular expression must match digits, as in 'run [0-9]+'"
        )
        raise unknown("name in --not-numbers", zone, NAMED, hint)


def _is_outside_numbers(expression: str) -> bool:
    """Return whether an expression consists of words that no notation has in a number, such as
    the suffix in ``3 million``."""
    return _WORDS.fullmatch(expression) is not None and not any(
        expression in suffix for suffix in SUFFIXES
    )


def zone_at(text: str, start: int, end: int, zones: Sequence[str]) -> str | None:
    """Return the first zone with a match that overlaps the characters ``text[start:end]``; None if
    none does. An empty match overlaps nothing.

    >>> zone_at("on 2024-01-02", 3, 7, ("times", "dates"))
    'dates'
    """
    for zone in zones:
        for match in _compiled(zone).finditer(text):
            if max(start, match.start()) < min(end, match.end()):
                return zone
    return None


def outside_zones(
    data: UInt8s, rows: Int32s, starts: Int32s, ends: Int32s, counts: Int32s, zones: Sequence[str]
) -> Bools:
    """Return which numbers of a column of texts overlap no zone, bool[numbers].

    The arguments are those of :func:`numtok.numerals.find.find` and its result.
    """
    keep = np.ones(len(starts), np.bool_)
    stops = np.cumsum(counts)
    for row in np.flatnonzero(counts).tolist():
        begin, end = int(rows[row]), int(rows[row + 1])
        spans = np.array([*_spans(data[begin:end].tobytes().decode(), zones)], np.int64)
        if len(spans):
            own = slice(int(stops[row] - counts[row]), int(stops[row]))
            keep[own] = ~overlaps(starts[own], ends[own], *(spans + begin).T)
    return keep


def overlaps(starts: Int32s | Ints, ends: Int32s | Ints, first: Ints, last: Ints) -> Bools:
    """Return which of n spans overlap any of m zones ``[first, last)``, bool[n]."""
    found = (starts[:, None] < last) & (first < ends[:, None])
    return np.asarray(found.any(axis=1))


def _spans(text: str, zones: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the byte offsets of the zones in a text that are not empty."""
    plain = text.isascii()
    for zone in zones:
        for match in _compiled(zone).finditer(text):
            start, end = match.span()
            if start < end:
                if not plain:
                    start, end = len(text[:start].encode()), len(text[:end].encode())
                yield start, end
