"""interleave: compiled functions that split texts at numbers and merge text tokens with number
tokens.

They are in a separate module, so that decoding does not need numba.
"""

import numpy as np

from numtok.kernel_types import int32, int64, reads, uint8, uint16, uint32, void, writes
from numtok.kernels import byte_at, inlined, kernel

_KEYWORDS = np.frombuffer(b"\3NUM \3PAD \3END \4MASK", np.uint8).reshape(4, 5)  # length, bytes
_OPEN, _BACKSLASH = ord("["), ord("\\")
NUMBER_BYTES = np.frombuffer(b"[NUM]", np.uint8)  # replaces a number in the text


@inlined
def at_keyword(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether NUM, PAD, END or MASK is at offset ``i``, possibly after backslashes."""
    while i < end and byte_at(data, i) == _BACKSLASH:
        i += 1
    for keyword in range(len(_KEYWORDS)):
        length = _KEYWORDS[keyword, 0]
        same = i + length <= end
        k = 0
        while same and k < length:
            same = byte_at(data, i + k) == _KEYWORDS[keyword, k + 1]
            k += 1
        if same:
            return True
    return False


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), reads(int32), reads(int32), reads(int32),
        writes(uint8), writes(int32),
    )
)  # fmt: skip
def cut(data, bounds, limits, counts, starts, ends, pieces, piece_bounds):  # type: ignore[no-untyped-def]
    """Copy the text between the numbers of each segment to ``pieces``, with special tokens escaped.

    ``piece_bounds`` receives the bounds of the pieces. Returns the number of bytes written.
    """
    out = 0
    piece = 0
    number = 0
    piece_bounds[0] = 0
    for segment in range(len(counts)):
        begin = np.int64(bounds[segment])
        for k in range(counts[segment] + 1):
            last = k == counts[segment]
            end = np.int64(bounds[segment + 1]) if last else np.int64(starts[number])
            for i in range(begin, end):
                pieces[out] = byte_at(data, i)
                out += 1
                if byte_at(data, i) == _OPEN and at_keyword(data, i + 1, limits[segment]):
                    pieces[out] = _BACKSLASH
                    out += 1
            piece += 1
            piece_bounds[piece] = out
            if not last:
                begin = np.int64(ends[number])
                number += 1
    return out


@kernel(int64(reads(uint8), reads(int32), reads(int32), writes(uint8), writes(int32)))
def fill(pieces, piece_bounds, counts, text, bounds):  # type: ignore[no-untyped-def]
    """Join the pieces of each segment with ``[NUM]``, and write them to ``text``.

    ``bounds`` receives the bounds of the segments. Returns the number of bytes written.
    """
    out = 0
    piece = 0
    bounds[0] = 0
    for segment in range(len(counts)):
        for k in range(counts[segment] + 1):
            for i in range(piece_bounds[piece], piece_bounds[piece + 1]):
                text[out] = byte_at(pieces, i)
                out += 1
            piece += 1
            if k < counts[segment]:
                for i in range(len(NUMBER_BYTES)):
                    text[out] = byte_at(NUMBER_BYTES, i)
                    out += 1
        bounds[segment + 1] = out
    return out


@kernel(
    [
        void(
            reads(int32), reads(uint32), reads(int32), reads(uint32), reads(int32), int64, int64,
            writes(token), writes(int32), writes(int32),
        )
        for token in (uint16, uint32)
    ]
)  # fmt: skip
def interleave(  # type: ignore[no-untyped-def]
    counts, text_ids, text_bounds, number_ids, number_lengths, number_first, text_first,
    tokens, bounds, places,
):  # fmt: skip
    """Merge the tokens of text pieces and of numbers into ``tokens``.

    ``bounds`` receives the bounds of the segments, and ``places`` the index of each number's first
    token within its segment.
    """
    out = 0
    piece = 0
    number = 0
    taken = 0
    bounds[0] = 0
    for segment in range(len(counts)):
        begin = out
        for k in range(counts[segment] + 1):
            for i in range(text_bounds[piece], text_bounds[piece + 1]):
                tokens[out] = text_ids[i] + text_first
                out += 1
            piece += 1
            if k < counts[segment]:
                places[number] = out - begin
                for _ in range(number_lengths[number]):
                    tokens[out] = number_ids[taken] + number_first
                    out += 1
                    taken += 1
                number += 1
        bounds[segment + 1] = out
