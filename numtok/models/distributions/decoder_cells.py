"""Conversion of numbers to a decoder's tokens, and of tokens to the cells that they stand for.

A cell is the interval of all numbers with the same tokens. A scheme has tokens for numbers
that it cannot represent (overflow, underflow, not a number), but a decoder head predicts only
finite numbers. Overflows are therefore assigned to the largest cell. Underflows are assigned to
zero if the scheme can represent it; the cell of zero fills the gap around it.
"""

import numpy as np
from numpy.typing import NDArray

from numtok.encoding import grid
from numtok.encoding.schemes.base import LOSSES, Scheme
from numtok.numerals.column import Numerals

_SLACK = 1e-9  # tolerance for rounded ends, as a fraction of a cell's width


def nearest_tokens(
    scheme: Scheme, values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the tokens int64[n, K] of normalized values, and bool[n], True for values out of
    range.

    A value out of range has the tokens of the nearest number that the scheme can represent; NaN has
    the tokens of zero.

    >>> from numtok.encoding.schemes.base import SCHEMES
    >>> nearest_tokens(SCHEMES.build("nd,base=10,length=2"), np.array([0.25, 1.5]))
    (array([[2, 5],
           [9, 9]]), array([False,  True]))
    """
    largest = scheme.bounds.high
    clipped = np.clip(np.nan_to_num(values), -largest, largest)
    tokens, outcomes = _encoded(scheme, clipped)
    lost = np.isin(outcomes, LOSSES)
    if lost.any():  # too small, or negative in a codec without negative numbers
        nearest = np.where(np.abs(clipped[lost]) < scheme.bounds.low, 0.0, scheme.bounds.low)
        tokens[lost], _ = _encoded(scheme, nearest)
    low, high = cells(scheme, tokens)
    slack = _SLACK * (high - low)
    return tokens, ~((values >= low - slack) & (values <= high + slack))


def cells(
    scheme: Scheme, tokens: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high ends, float64[n] each, of the cells of numbers with given tokens
    (int64[n, K]).

    The cell of zero extends to the smallest nonzero number on each side.
    """
    low, high = grid.cells(scheme, tokens)
    point = low == high
    if point.any():
        (smallest,), _ = _encoded(scheme, np.array([scheme.bounds.low]))
        (edge,), _ = grid.cells(scheme, smallest[None])
        low, high = np.where(point, -edge, low), np.where(point, edge, high)
    return low, high


def _encoded(
    scheme: Scheme, values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    encoded = scheme.encode(Numerals(values))
    return encoded.tokens.reshape(len(values), scheme.tokens_per_number or 0).astype(
        np.int64
    ), encoded.outcomes
