"""Texts cut into tokens with their numbers in them, and where among the tokens these are.

What a tokenizer makes of a whole text is known by its bytes: every token gives back its own.
"""

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.text_tokenizers.base import (
    FittedTokenizer,
    Pieces,
    Segments,
    Woven,
    cut,
    marked,
)
from numtok.errors import DataError


def cut_whole(
    segments: Segments,
    text: FittedTokenizer,
    first: int,
    dtype: type[np.unsignedinteger],
) -> tuple[Woven, NDArray[np.int32]]:
    """The tokens of segments, ids from ``first`` on, and how many each of the k numbers has
    (int32[k]): those with some of its characters, which may have some of the text beside it.

    Raises DataError where two numbers have no token of their own each.
    """
    pieces, count = cut(segments), len(segments.counts)
    whole, starts, ends = _filled(segments, pieces)
    ids, bounds = text.encode(whole)
    sizes = np.array([len(token) for token in text.token_bytes], np.int64)
    stops = np.cumsum(sizes[ids])  # where each token ends
    begin = np.searchsorted(stops, starts, side="right")
    end = np.searchsorted(stops, ends, side="left") + 1
    # What two numbers have in common is of the first: "1-" and "-2" may share a sign.
    begin[1:] = np.maximum(begin[1:], end[:-1])
    lengths = (end - begin).astype(np.int32)
    if (lengths < 1).any():
        at = int(np.argmax(lengths < 1))
        shown = whole.data[starts[at - 1] : ends[at]].tobytes().decode(errors="replace")
        raise DataError(
            f"the text tokenizer has one token for two numbers ({shown!r}), which --scheme native "
            "cannot tell apart; give another --scheme, or another --text-tokenizer"
        )
    segment = np.repeat(np.arange(count), segments.counts)
    places = (begin - bounds[segment]).astype(np.int32)
    tokens = (ids + np.uint32(first)).astype(dtype)
    return Woven(*marked(pieces, segments.counts), tokens, bounds, places), lengths


def _filled(
    segments: Segments, pieces: Pieces
) -> tuple[Pieces, NDArray[np.int64], NDArray[np.int64]]:
    """The segments, their text escaped, with the numbers as written; and where these begin and
    end."""
    count, numbers = len(segments.counts), len(segments.starts)
    # Piece, number, piece ... of each segment: a number stands behind each piece but the last.
    last = np.cumsum(segments.counts + 1) - 1  # of each segment's pieces
    of_piece = np.diff(pieces.bounds).astype(np.int64)
    before = np.delete(np.arange(count + numbers), last)  # the piece before each number
    behind = np.zeros(count + numbers, np.int64)
    behind[before] = segments.ends - segments.starts
    ends = np.cumsum(of_piece + behind)  # of each piece with its number
    whole = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    is_number = np.zeros(len(whole) + 1, np.int8)
    number_ends = ends[before]
    starts = number_ends - behind[before]
    np.add.at(is_number, starts, 1)
    np.add.at(is_number, number_ends, -1)
    inside = is_number[:-1].cumsum(dtype=np.int8) > 0
    whole[~inside] = pieces.data
    widths = behind[before]
    flat = np.repeat(segments.starts - (np.cumsum(widths) - widths), widths)
    whole[inside] = segments.data[flat + np.arange(len(flat))]
    bounds = np.concatenate([[0], ends[last]]).astype(np.int32)
    return Pieces(whole, bounds), starts, number_ends
