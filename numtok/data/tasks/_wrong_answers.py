"""Ways to draw a wrong answer to a sum or a difference: they decide how hard it is to tell."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from numtok.data.tasks._unrepeated import Whole
from numtok.registry import Range

Chances = NDArray[np.float64]

#: Given both numbers, the sign of the operation, the right answer (all [n]), chances [2, n], and
#: how far off near ones are: wrong answers [n], some maybe right after all.
Way = Callable[[Whole, Whole, Whole, Whole, Chances, Range], Whole]


def _near(a: Whole, b: Whole, sign: Whole, right: Whole, chance: Chances, off: Range) -> Whole:
    """Off by a share of the right answer, drawn by its logarithm, by 1 at least, either way."""
    share = off.low * np.exp(chance[0] * np.log(off.high / off.low))
    amount = np.maximum(1, np.rint(share * np.abs(right))).astype(np.int64)
    made: Whole = right + np.where(chance[1] < 0.5, -amount, amount)
    return made


def _operation(a: Whole, b: Whole, sign: Whole, right: Whole, chance: Chances, off: Range) -> Whole:
    """The other operation, of a difference without its sign."""
    return np.where(sign > 0, np.abs(a - b), a + b)


def _digit(a: Whole, b: Whole, sign: Whole, right: Whole, chance: Chances, off: Range) -> Whole:
    """One digit of the right answer is another, none is lost at the beginning."""
    size = np.abs(right)
    digits = np.floor(np.log10(np.maximum(size, 1) + 0.5)).astype(np.int64) + 1
    power = 10 ** np.floor(chance[0] * digits).astype(np.int64)
    digit = size // power % 10
    # The first digit becomes no 0, unless it is the only one, without a sign.
    is_first = (size // power < 10) & ((size > 9) | (right < 0))
    more = 1 + np.floor(chance[1] * 9).astype(np.int64)
    other = (digit + more) % 10
    other = np.where(is_first & (other == 0), digit, other)  # no change, so it is drawn again
    made = size + (other - digit) * power
    signed: Whole = np.where(right < 0, -made, made)
    return signed


#: ``drawn`` is made by the task, which draws the numbers.
WAYS: dict[str, Way] = {"near": _near, "operation": _operation, "digit": _digit}
