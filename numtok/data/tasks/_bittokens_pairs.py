"""Pairs of operands with an operator, sampled like BitTokens' benchmark."""

from collections.abc import Callable
from decimal import Context, Decimal
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.data.tasks._decimal_draws import (
    DECADES,
    EXACT,
    MOST_DIGITS,
    Decimals,
    answered,
    is_inside,
    mantissas,
    nonzero_digits,
    quotient,
    whole,
)

CHANCES = 10  # uniform numbers needed per pair
_FEWEST, _MOST = 2, 33  # digits of both operands together
_QUOTIENT_DIGITS = (2, 16)
_NEAR = Decimal("0.15")  # decay of the preference of sums for operands of similar size, per decade
#: Exponents 2 to 5 and 1/2, 1/4, 1/5, as mantissa and power of ten.
_EXPONENTS = ((2, 0), (3, 0), (4, 0), (5, 0), (5, -1), (25, -2), (2, -1))
_ROOTS = 4  # index of the first fractional exponent
_SIGNS = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
_SIGN_SHARES = np.array([0.4, 0.6, 0.8])
_POWERS = Context(prec=60)  # for roots, which are then rounded to 15 digits


class Questions(NamedTuple):
    """``n`` questions about two numbers."""

    first: Decimals  # [n]
    second: Decimals  # [n]
    operators: Ints  # [n] index of the operator; only addition has two
    usable: NDArray[np.bool_]  # [n] whether the question satisfies the rules of the benchmark


class _Decades(NamedTuple):
    """Pairs of decades with their cumulative probabilities."""

    pairs: Ints  # [2, k]
    upto: Floats  # [k]

    @classmethod
    def of(cls, allowed: Callable[[int, int], float]) -> "_Decades":
        """Build from the weight of each pair of decades, 0 to exclude it."""
        weighed = {pair: allowed(*pair) for pair in product(DECADES, DECADES)}
        weights = {pair: weight for pair, weight in weighed.items() if weight}
        sums = np.cumsum([*weights.values()])
        return cls(np.array([*weights]).T, sums / sums[-1])

    def drawn(self, share: Floats) -> Ints:
        """Sample pairs of decades (int64[2, n]) from uniform numbers [n]."""
        at = np.minimum(np.searchsorted(self.upto, share, "right"), len(self.upto) - 1)
        return self.pairs[:, at]


@cache
def _decades(operation: str) -> _Decades:
    if operation == "addition":
        near = [float((-_NEAR * apart).exp()) for apart in range(len(DECADES))]
        return _Decades.of(lambda a, b: near[abs(a - b)])
    if operation == "multiplication":
        return _Decades.of(lambda a, b: float(-16 < a + b < 15))
    return _Decades.of(lambda a, b: float(a + b in DECADES))  # of a quotient and a divisor


def drawn(operation: str, chance: Floats) -> Questions:
    """Sample questions for an operation from uniform numbers [CHANCES, n] in [0, 1)."""
    if operation == "exponentiation":
        return _powers(chance)
    if operation == "division":
        return _quotients(chance)
    decades = _decades(operation).drawn(chance[0])
    total = whole(chance[1], _FEWEST, _MOST)
    low, high = np.maximum(1, total // 2), np.minimum(total - 1, MOST_DIGITS)
    digits = _triangular(chance[2], low, np.minimum(low + 1, high), high)
    operands = [
        _operand(chance[3:5], digits, decades[0]),
        _operand(chance[5:7], np.minimum(total - digits, MOST_DIGITS), decades[1]),
    ]
    long, short = _signed(operands[0], operands[1], chance[7])
    swap = chance[8] < 0.5
    first = Decimals(*(np.where(swap, *pair) for pair in zip(short, long, strict=True)))
    second = Decimals(*(np.where(swap, *pair) for pair in zip(long, short, strict=True)))
    minus = (chance[9] < 0.5) & (operation == "addition")
    if operation == "addition":
        values = first.values + np.where(minus, -1, 1) * second.values
    else:
        values = first.values * second.values
    return Questions(first, second, minus.astype(np.int64), is_inside(values))


def _quotients(chance: Floats) -> Questions:
    """Sample divisions: the dividend is the product of a sampled quotient and divisor."""
    decades = _decades("division").drawn(chance[0])
    digits = whole(chance[1], *_QUOTIENT_DIGITS)
    result = _operand(chance[3:5], digits, decades[0])
    divisor = _operand(chance[5:7], whole(chance[2], 1, MOST_DIGITS - digits), decades[1])
    result, divisor = _signed(result, divisor, chance[7])
    first = Decimals(result.mantissas * divisor.mantissas, result.places + divisor.places)
    return Questions(first, divisor, np.zeros(len(digits), np.int64), is_inside(first.values))


def _powers(chance: Floats) -> Questions:
    digits = whole(chance[1], 1, MOST_DIGITS)
    base = _operand(chance[3:5], digits, whole(chance[0], DECADES[0], DECADES[-1]))
    chosen = whole(chance[2], 0, len(_EXPONENTS) - 1)
    exponent = Decimals(*np.array(_EXPONENTS)[chosen].T)
    value, result = base.values, base.values
    for times in range(2, 2 + _ROOTS):
        result = np.where((exponent.mantissas >= times) & (chosen < _ROOTS), result * value, result)
    return Questions(base, exponent, np.zeros(len(digits), np.int64), is_inside(result))


def _operand(chance: Floats, digits: Ints, decades: Ints) -> Decimals:
    """Sample numbers with given digits and decades, from two uniform numbers each."""
    return Decimals(mantissas(chance[0], chance[1], digits), decades - digits + 1)


def _signed(first: Decimals, second: Decimals, share: Floats) -> list[Decimals]:
    """Add minus signs: none to 40% of pairs, and 20% each to the first, the second or both."""
    signs = _SIGNS[np.searchsorted(_SIGN_SHARES, share, "right")].T
    pairs = zip((first, second), signs, strict=True)
    return [Decimals(number.mantissas * sign, number.places) for number, sign in pairs]


def _triangular(share: Floats, low: Ints, mode: Ints, high: Ints) -> Ints:
    """Sample integers [n] from a triangular distribution, rounded down."""
    width = np.maximum(high - low, 1)
    peak = (mode - low) / width
    rising = low + np.sqrt(share * width * (mode - low))
    falling = high - np.sqrt((1 - share) * width * (high - mode))
    drawn: Ints = np.floor(np.where(share < peak, rising, falling)).astype(np.int64)
    return np.clip(drawn, low, high)


_SYMBOLS = {"addition": "+-", "multiplication": "*", "division": "/", "exponentiation": "^"}


def symbol(operation: str, operator: int) -> str:
    """Return the symbol of the operator with the index ``operator``, such as ``*``."""
    return _SYMBOLS[operation][operator]


def answer(operator: str, first: Decimal, second: Decimal) -> str:
    """Return the answer to a question, rounded to 15 digits.

    >>> answer("/", Decimal(1), Decimal(8)), answer("^", Decimal(2), Decimal("0.5"))
    ('0.125', '1.4142135623731')
    """
    if operator == "/":
        return quotient(first, second)
    if operator == "^":
        return answered(_POWERS.power(first, second))
    apply = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[operator]
    return answered(apply(first, second))


def difficulty(operator: str, first: Decimal, second: Decimal) -> int:
    """Return the difficulty of a question.

    For sums, each digit position counts 1 if one number has a nonzero digit in it, and 3 if both
    do. For other operations, the difficulty is the total number of nonzero digits.

    >>> difficulty("+", Decimal("12"), Decimal("0.35")), difficulty("*", Decimal(12), Decimal(305))
    (4, 4)
    """
    if operator in "+-":
        places = [_places(number) for number in (first, second)]
        return len(places[0] ^ places[1]) + 3 * len(places[0] & places[1])
    return nonzero_digits(first) + nonzero_digits(second)


def _places(number: Decimal) -> set[int]:
    """Return the digit positions (powers of ten) of a number's nonzero digits."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return {exponent + index for index, digit in enumerate(reversed(digits)) if digit}
