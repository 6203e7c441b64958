"""Numbers that nobody knows, written ``[?]`` in a text, as numbers among all that are found."""

from collections.abc import Sequence

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.texts import Spans, Texts
from numtok.errors import DataError

HOLE = "[?]"
_PLACEHOLDER = "1"  # what stands there while it is not known; nothing looks at it


def filled(pieces: Sequence[str]) -> str:
    """A text, of the pieces around its holes, with a number in each of them.

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
    """int64[holes]: which of the numbers that were found stand for holes.

    rows
        What each text is called in a message.
    texts
        The pieces around the holes of each; :func:`filled`, they are ``data``.
    percent
        Whether a number takes its sign along.

    Raises DataError where a hole would be no number by itself.
    """
    ends = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    numbers = {span: number for number, span in enumerate(ends)}
    found = []
    for row, pieces, begin in zip(rows, texts, data.rows.tolist(), strict=False):
        at = begin
        for k, piece in enumerate(pieces[:-1]):
            at += len(piece.encode())
            end = at + len(_PLACEHOLDER)
            if (at, end) not in numbers:
                before, behind = HOLE.join(pieces[: k + 1])[-9:], HOLE.join(pieces[k + 1 :])[:9]
                remedy = "put spaces around it"
                if percent and behind.startswith("%"):
                    remedy = f"a % is part of the number here, so write {HOLE} in place of both"
                raise DataError(
                    f"{row}: {before + HOLE + behind!r} has {HOLE} where no number can be "
                    f"read by itself; {remedy}"
                )
            found.append(numbers[at, end])
            at = end
    return np.array(found, np.int64)
