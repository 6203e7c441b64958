"""holes: finds which numbers of a text are unknown, that is, written ``[?]``."""

from collections.abc import Sequence

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.texts import Texts
from numtok.errors import DataError
from numtok.numerals.find import Spans

HOLE = "[?]"
_PLACEHOLDER = "1"  # replaces an unknown number; its value is never used


def filled(pieces: Sequence[str]) -> str:
    """Return a text with a placeholder number in each hole, given the pieces of text around the
    holes.

    >>> filled("a room of [?] m".split(HOLE))
    'a room of 1 m'
    """
    return _PLACEHOLDER.join(pieces)


def hole_numbers(
    rows: Sequence[str],
    texts: Sequence[Sequence[str]],
    data: Texts,
    spans: Spans,
    *,
    percent: bool,
) -> Ints:
    """Return the indices of the numbers that stand for holes, int64[holes].

    rows
        Names of the texts, for error messages.
    texts
        Pieces of each text around its holes.
    data
        Texts in which the holes were filled by :func:`filled`.
    spans
        Spans of all numbers in ``data``.
    percent
        True if a percent sign after a number is read as part of the number.

    Raises DataError if a hole would not be read as a separate number.
    """
    ends = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    numbers = {span: number for number, span in enumerate(ends)}
    holes = []
    for row, pieces, begin in zip(rows, texts, data.rows.tolist(), strict=False):
        at = begin
        for k, piece in enumerate(pieces[:-1]):
            at += len(piece.encode())
            end = at + len(_PLACEHOLDER)
            if (at, end) not in numbers:
                before, after = HOLE.join(pieces[: k + 1])[-9:], HOLE.join(pieces[k + 1 :])[:9]
                remedy = "Put spaces around it"
                if percent and after.lstrip().startswith("%"):
                    remedy = f"A % is part of the number here, so write {HOLE} in place of both"
                raise DataError(
                    f"{row}: {HOLE} in {before + HOLE + after!r} would not be read as a separate "
                    f"number. {remedy}"
                )
            holes.append(numbers[at, end])
            at = end
    return np.array(holes, np.int64)
