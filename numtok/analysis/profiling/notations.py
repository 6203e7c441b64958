"""Notations around numbers, such as ``<0.1``, that no numeral policy interprets.

:func:`count_notations` checks the bytes around numbers in a column of texts, and
:func:`notation_notes` describes the counts in words. Decimal commas are reported separately
(``FieldProfile.after_comma``).
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools
from numtok.encoding.texts import Texts
from numtok.numerals.find import Spans

SAMPLED = 20_000  # numbers of a batch whose notations are counted, the first ones
RARE = 1e-3  # a notation gets a note from this fraction of the numbers on
NUMBERS = "numbers"

_DIGIT = np.isin(np.arange(256), [*b"0123456789"])

_NOTES = {
    "censored": "follow < or > (as in <0.1): they are limits, and only the value is read",
    "code": "have leading zeros (as in 00239). If they are codes, write a letter before them: "
    "then they are text",
    "uncertainty": "are in brackets right after digits (as in 5.12(3)): an uncertainty is read as "
    "another number",
}


def count_notations(texts: Texts, spans: Spans) -> Counter[str]:
    """Return the number of occurrences of each notation among the first ``SAMPLED`` numbers in a
    column of texts and, under ``NUMBERS``, the number of numbers examined. The result is empty if
    the texts contain no numbers."""
    starts, ends = (part[:SAMPLED].astype(np.int64) for part in (spans.starts, spans.ends))
    if not len(starts):
        return Counter()
    row = np.repeat(np.arange(len(spans.counts)), spans.counts)[:SAMPLED]
    begins, stops = texts.rows[:-1][row], texts.rows[1:][row]

    def at(offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
        inside = (offsets >= begins) & (offsets < stops)
        return np.where(inside, texts.data[np.where(inside, offsets, starts)], np.uint8(0))

    before, before2, after = at(starts - 1), at(starts - 2), at(ends)
    first, second, third = (at(starts + k) for k in range(3))
    closed = (before == ord("(")) & (after == ord(")"))
    part = _second_part(starts, ends, before == ord(","))
    notations = {
        "censored": np.isin(np.where(before == ord(" "), before2, before), [*b"<>"]),
        "code": (first == ord("0")) & _DIGIT[second] & _DIGIT[third] & ~part,
        "uncertainty": closed & _DIGIT[before2],
    }
    counts = {name: int(which.sum()) for name, which in notations.items()}
    return Counter({NUMBERS: len(starts)} | counts)


def notation_notes(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for the user about each notation that is not rare, given the count of each."""
    least = max(1.0, RARE * counts.get(NUMBERS, 0))
    for name, text in _NOTES.items():
        if counts.get(name, 0) >= least:
            yield f"{counts[name]:,} of {counts[NUMBERS]:,} numbers {text}"


def _second_part(starts: NDArray[np.int64], ends: NDArray[np.int64], comma: Bools) -> Bools:
    """Return which numbers follow a number of at most three digits (and a sign) and a comma."""
    follows = np.zeros(len(starts), np.bool_)
    near = (starts[1:] - 1 == ends[:-1]) & (ends[:-1] - starts[:-1] <= 4)
    follows[1:] = comma[1:] & near
    return follows
