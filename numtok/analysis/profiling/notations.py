"""Notations around numbers, such as ``<0.1``, that the numeral policy does not interpret.

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
NUMBERS, JOINED, SPACED = "numbers", "joined percent", "spaced percent"

_OPENS = np.isin(np.arange(256), [0, *b" \t\n=:;,|$([{\"'"])  # 0: the end of the text
_WORD = np.array([chr(byte).isalnum() or byte >= 0x80 for byte in range(256)])
_DIGIT = np.isin(np.arange(256), [*b"0123456789"])
_DASHES = [0x91, 0x93]  # the last bytes of U+2011 and U+2013, after E2 80

_NOTES = {
    "censored": "follow < or > (as in <0.1): they are limits, and only the value is read",
    "code": "have leading zeros (as in 00239). If they are codes, write a letter before them: "
    "then they are text",
    "dash": "follow an en dash or a non-breaking hyphen. If it is a minus, write it as -",
    "bracket": "are alone in brackets or end with a minus (as in (5.00) and 5-). If they are "
    "negative, write -5",
    "uncertainty": "are in brackets right after digits (as in 5.12(3)): an uncertainty is read as "
    "another number",
    "thousands": "are the second part of a number such as 1,012.0. Read it as one: --numbers "
    "thousands",
    "suffix": "have a suffix k, M or B, which is text: 2.5k is read as 2.5. Write them in full",
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

    before, before2, after, after2 = at(starts - 1), at(starts - 2), at(ends), at(ends + 1)
    first, second, third = (at(starts + k) for k in range(3))
    dash = (at(starts - 3) == 0xE2) & (before2 == 0x80) & np.isin(before, _DASHES)
    closed = (before == ord("(")) & (after == ord(")"))
    minus_after = (after == ord("-")) & _OPENS[after2] & _OPENS[before]
    part = _second_part(starts, ends, before == ord(","))
    three = _DIGIT[first] & _DIGIT[second] & _DIGIT[third] & (at(starts + 3) == ord("."))
    last = np.where(at(ends - 1) == ord("%"), ord("%"), after)
    notations = {
        "censored": np.isin(np.where(before == ord(" "), before2, before), [*b"<>"]),
        "code": (first == ord("0")) & _DIGIT[second] & _DIGIT[third] & ~part,
        "dash": dash & _OPENS[at(starts - 4)],
        "bracket": (closed & ~_WORD[before2] & _DIGIT[first]) | minus_after,
        "uncertainty": closed & _DIGIT[before2],
        "thousands": three & part,
        "suffix": np.isin(after, [*b"kMB"]) & ~_WORD[after2],
        JOINED: last == ord("%"),
        SPACED: (last == ord(" ")) & (after2 == ord("%")),
    }
    counts = {name: int(which.sum()) for name, which in notations.items()}
    return Counter({NUMBERS: len(starts)} | counts)


def notation_notes(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for the user about each notation that is not rare, given the count of each."""
    least = max(1.0, RARE * counts.get(NUMBERS, 0))
    for name, text in _NOTES.items():
        if counts.get(name, 0) >= least:
            yield f"{counts[name]:,} of {counts[NUMBERS]:,} numbers {text}"
    joined, spaced = counts.get(JOINED, 0), counts.get(SPACED, 0)
    if min(joined, spaced) >= least:
        yield (
            f"{joined:,} numbers are written like 3% and {spaced:,} like 3 %. Write all in one "
            "way: with percent only 3% is divided by 100"
        )


def _second_part(starts: NDArray[np.int64], ends: NDArray[np.int64], comma: Bools) -> Bools:
    """Return which numbers follow a number of at most three digits (and a sign) and a comma."""
    follows = np.zeros(len(starts), np.bool_)
    near = (starts[1:] - 1 == ends[:-1]) & (ends[:-1] - starts[:-1] <= 4)
    follows[1:] = comma[1:] & near
    return follows
