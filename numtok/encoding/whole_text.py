"""Texts cut into tokens with their numbers in them, and where among the tokens these are.

What a tokenizer makes of a whole text is known by its bytes: every token gives back its own.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self, TypeGuard, final

import numpy as np

from numtok.arrays import Bools, Int32s, Ints, ranges
from numtok.encoding.schemes.base import Scheme
from numtok.encoding.segments import Segments, marked
from numtok.encoding.text_tokenizers.base import (
    FittedTokenizer,
    Woven,
)
from numtok.encoding.texts import Texts
from numtok.errors import DataError


class Parted(NamedTuple):
    """The text of a number's tokens: a numeral (None if there is none), and the bytes beside it."""

    before: bytes
    literal: str | None
    after: bytes


class TextScheme(Scheme):
    """A scheme that writes the numbers of a text in the tokens of that text.

    Which tokens are a number only their place in a row says, and a token may reach over the border
    of a number. ``text`` is None if numbers stand alone.
    """

    text: FittedTokenizer | None

    @final
    def of_text(self, text: FittedTokenizer) -> Self:
        """Return the scheme for the numbers of texts in these tokens."""
        made = replace(self)  # type: ignore[type-var]  # subclasses are dataclasses
        object.__setattr__(made, "text", text)
        return made

    @property
    @abstractmethod
    def own_tokens(self) -> Bools:
        """bool[vocabulary]: the tokens of which a model may make a number."""

    @abstractmethod
    def parted(self, tokens: Sequence[int]) -> Parted:
        """Divide the text of a number's tokens."""


def in_text(scheme: Scheme) -> TypeGuard[TextScheme]:
    """Return whether a scheme writes numbers in the tokens of a text."""
    return isinstance(scheme, TextScheme) and scheme.text is not None


def among_text(scheme: Scheme, text: FittedTokenizer) -> Scheme:
    """Return the scheme for the numbers of texts in these tokens."""
    return scheme.of_text(text) if isinstance(scheme, TextScheme) else scheme


def own_tokens(scheme: Scheme) -> Bools:
    """bool[vocabulary]: the tokens of which a model may make a number."""
    if isinstance(scheme, TextScheme):
        return scheme.own_tokens
    return np.ones(len(scheme.vocabulary()), np.bool_)


def cut_whole(
    segments: Segments,
    text: FittedTokenizer,
    first: int,
    dtype: type[np.unsignedinteger],
) -> tuple[Woven, Int32s]:
    """The tokens of segments, ids from ``first`` on, and how many each of the k numbers has
    (int32[k]): those with some of its characters, which may have some of the text beside it.

    Raises DataError where two numbers have no token of their own each.
    """
    pieces, count = segments.pieces(), len(segments.counts)
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


def _filled(segments: Segments, pieces: Texts) -> tuple[Texts, Ints, Ints]:
    """The segments, their text escaped, with the numbers as written; and where these begin and
    end."""
    count, numbers = len(segments.counts), len(segments.starts)
    # Piece, number, piece ... of each segment: a number stands behind each piece but the last.
    last = np.cumsum(segments.counts + 1) - 1  # of each segment's pieces
    of_piece = np.diff(pieces.rows).astype(np.int64)
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
    whole[inside] = segments.data[ranges(segments.starts, behind[before])]
    bounds = np.concatenate([[0], ends[last]]).astype(np.int32)
    return Texts(whole, bounds), starts, number_ends
