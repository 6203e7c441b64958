"""Tokens of numbers in the contract suite of schemes: divided by number, compared, shown."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import DecodedNumbers, Encoded, Scheme


def shortened(literal: str) -> str:
    """For a message: of more than 48 characters the first and the last 22."""
    return literal if len(literal) <= 48 else f"{literal[:22]}...{literal[-22:]}"


def token_names(scheme: Scheme, tokens: Sequence[int]) -> str:
    """Tokens as a person reads them; ids outside the vocabulary as numbers."""
    names = scheme.vocabulary()
    shown = [names[token] if token < len(names) else f"<{token}>" for token in tokens[:24]]
    return " ".join(shown + ["..."] * (len(tokens) > 24)) or "nothing"


def by_number(encoded: Encoded) -> list[tuple[int, ...]]:
    """The tokens of each number."""
    tokens, ends = encoded.tokens.tolist(), np.cumsum(encoded.lengths).tolist()
    return [tuple(tokens[end - n : end]) for n, end in zip(encoded.lengths, ends, strict=True)]


def decoded_numbers(scheme: Scheme, encoded: Encoded) -> DecodedNumbers:
    """What the scheme reads in the tokens and the channel that it wrote."""
    return scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)


def token_ids(sequences: Sequence[Sequence[int]]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """uint32[sum of lengths] and int32[n]: the numbers' tokens one after the other, and their
    lengths."""
    flat = [token for tokens in sequences for token in tokens]
    return np.array(flat, np.uint32), np.array([len(tokens) for tokens in sequences], np.int32)


def same_bytes(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    """Whether two arrays of any shape have the same bytes, so that NaN equals NaN and -0 is not
    0; None is as None alone."""
    if one is None or other is None:
        return one is other
    return one.tobytes() == other.tobytes()


def form(array: NDArray[Any]) -> str:
    """``uint8[3]``"""
    return f"{array.dtype}{list(array.shape)}"
