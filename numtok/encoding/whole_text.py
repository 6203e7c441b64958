"""whole_text: tokenizes whole texts, including their numbers, and finds the tokens of the numbers.

Text tokenizers are lossless, so the bytes of the tokens determine their positions in the text.
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
    """Text of a number's tokens, split into the numeral and the bytes before and after it.
    ``literal`` is None if the text contains no numeral."""

    before: bytes
    literal: str | None
    after: bytes


class TextScheme(Scheme):
    """Base class for schemes that write numbers with text tokens.

    The tokens of a number are identified only by their position in a row, and a token may cross the
    boundary of a number. ``text`` is the text tokenizer, or None if numbers are encoded outside of
    a text.
    """

    text: FittedTokenizer | None

    @final
    def of_text(self, text: FittedTokenizer) -> Self:
        """Return a copy of the scheme that uses this text tokenizer."""
        scheme = replace(self)  # type: ignore[type-var]  # subclasses are dataclasses
        object.__setattr__(scheme, "text", text)
        return scheme

    @property
    @abstractmethod
    def own_tokens(self) -> Bools:
        """bool[vocabulary], True for each token that a model may use in a number."""

    @abstractmethod
    def parted(self, tokens: Sequence[int]) -> Parted:
        """Split the text of a number's tokens into the numeral and the bytes around it."""


def in_text(scheme: Scheme) -> TypeGuard[TextScheme]:
    """Return whether a scheme writes numbers with the tokens of a text tokenizer."""
    return isinstance(scheme, TextScheme) and scheme.text is not None


def among_text(scheme: Scheme, text: FittedTokenizer) -> Scheme:
    """Return the scheme for texts that are tokenized with ``text``. A scheme that is not a
    :class:`TextScheme` is returned unchanged."""
    return scheme.of_text(text) if isinstance(scheme, TextScheme) else scheme


def own_tokens(scheme: Scheme) -> Bools:
    """Return a mask of the tokens that a model may use in a number, bool[vocabulary]."""
    if isinstance(scheme, TextScheme):
        return scheme.own_tokens
    return np.ones(len(scheme.vocabulary()), np.bool_)


def cut_whole(
    segments: Segments,
    text: FittedTokenizer,
    first: int,
    dtype: type[np.unsignedinteger],
) -> tuple[Woven, Int32s]:
    """Tokenize whole segments, including their numbers. Returns the tokens, and the number of
    tokens of each of the k numbers, int32[k].

    The tokens of a number are those that contain at least one of its characters. They may also
    contain surrounding text. ``first`` is the id of the first text token.

    Raises DataError if two numbers share their only token.
    """
    pieces, count = segments.pieces(), len(segments.counts)
    whole, starts, ends = _filled(segments, pieces)
    ids, bounds = text.encode(whole)
    sizes = np.array([len(token) for token in text.token_bytes], np.int64)
    stops = np.cumsum(sizes[ids])  # where each token ends
    begin = np.searchsorted(stops, starts, side="right")
    end = np.searchsorted(stops, ends, side="left") + 1
    # A token shared by two numbers belongs to the first: "1-" and "-2" may share a sign.
    begin[1:] = np.maximum(begin[1:], end[:-1])
    lengths = (end - begin).astype(np.int32)
    if (lengths < 1).any():
        at = int(np.argmax(lengths < 1))
        shown = whole.data[starts[at - 1] : ends[at]].tobytes().decode(errors="replace")
        raise DataError(
            "--scheme native needs a separate token for each number, but the text tokenizer has "
            f"one token for two ({shown!r}). Use another --scheme or --text-tokenizer"
        )
    segment = np.repeat(np.arange(count), segments.counts)
    places = (begin - bounds[segment]).astype(np.int32)
    tokens = (ids + np.uint32(first)).astype(dtype)
    return Woven(*marked(pieces, segments.counts), tokens, bounds, places), lengths


def _filled(segments: Segments, pieces: Texts) -> tuple[Texts, Ints, Ints]:
    """Return the segments with escaped text and with numbers as written, and the start and end
    offset of each number [k]."""
    count, numbers = len(segments.counts), len(segments.starts)
    # Each segment is piece, number, piece ...: a number follows each piece except the last.
    last = np.cumsum(segments.counts + 1) - 1  # last piece of each segment
    of_piece = np.diff(pieces.rows).astype(np.int64)
    before = np.delete(np.arange(count + numbers), last)  # the piece before each number
    widths = np.zeros(count + numbers, np.int64)  # of the number after each piece
    data, starts_of, ends_of = segments.literals
    widths[before] = ends_of - starts_of
    ends = np.cumsum(of_piece + widths)  # of each piece with its number
    whole = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    is_number = np.zeros(len(whole) + 1, np.int8)
    number_ends = ends[before]
    starts = number_ends - widths[before]
    np.add.at(is_number, starts, 1)
    np.add.at(is_number, number_ends, -1)
    inside = is_number[:-1].cumsum(dtype=np.int8) > 0
    whole[~inside] = pieces.data
    whole[inside] = data[ranges(starts_of, widths[before])]
    bounds = np.concatenate([[0], ends[last]]).astype(np.int32)
    return Texts(whole, bounds), starts, number_ends
