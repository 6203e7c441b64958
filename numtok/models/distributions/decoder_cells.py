"""Numbers as the tokens that a decoder writes for them, and the cells that these stand for.

A codec has tokens for what it cannot write (overflow, underflow, no number). A decoder head says
finite numbers alone: what is too large is the largest cell, and what is too small for a codec with
a zero is zero, whose cell so is as wide as the gap around it.
"""

import numpy as np
from numpy.typing import NDArray

from numtok.encoding import grid
from numtok.encoding.schemes.base import LOSSES, Scheme
from numtok.numerals.column import Numerals

_SLACK = 1e-9  # of a cell's width: its ends are rounded


def nearest_tokens(
    scheme: Scheme, values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """int64[n, K] tokens of normalised values, and bool[n]: beyond all that can be written.

    What is beyond gets the tokens of the nearest that can be written, NaN those of zero.

    >>> from numtok.encoding.schemes.base import SCHEMES
    >>> nearest_tokens(SCHEMES.build("nd,base=10,length=2"), np.array([0.25, 1.5]))
    (array([[2, 5],
           [9, 9]]), array([False,  True]))
    """
    largest = scheme.bounds.high
    clipped = np.clip(np.nan_to_num(values), -largest, largest)
    tokens, outcomes = _encoded(scheme, clipped)
    lost = np.isin(outcomes, LOSSES)
    if lost.any():  # below what can be written, or negative where nothing negative can be
        nearest = np.where(np.abs(clipped[lost]) < scheme.bounds.low, 0.0, scheme.bounds.low)
        tokens[lost], _ = _encoded(scheme, nearest)
    low, high = cells(scheme, tokens)
    slack = _SLACK * (high - low)
    return tokens, ~((values >= low - slack) & (values <= high + slack))


def cells(
    scheme: Scheme, tokens: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[n] each: from where to where the cells of whole numbers (int64[n, K]) go.

    That of zero goes up to the smallest number on each side.
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
