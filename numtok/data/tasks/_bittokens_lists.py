"""Lists of two to five numbers around a center, sampled like BitTokens' benchmark."""

from decimal import Decimal
from functools import reduce
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.data.tasks._decimal_draws import (
    EXACT,
    LEAST,
    MOST_DIGITS,
    Decimals,
    exact,
    is_inside,
    nonzero_digits,
    power,
    quotient,
    rounded,
    whole,
)

LONGEST = 5
CHANCES = 8 + LONGEST  # uniform numbers needed per list
_CENTRES = (-12, 12)  # decades
_BELOW, _ABOVE_MEANS, _ABOVE_OTHERS = 15, 16, 1  # decades from the center to the spread
_MEANS = ("mean", "std")
_DOUBT = 2.0**-50  # relative error of two float64 that differ from decimals by three roundings each
LETTERS = "ABCDEF"  # names of the gaps before, between and after numbers


class Lists(NamedTuple):
    """``n`` lists of numbers, each with the details of a question about it."""

    numbers: Decimals  # [LONGEST, n], padded with 0
    lengths: Ints  # [n]
    choices: Ints  # [n] index of the direction or the gap in question
    references: Decimals  # [n] number to be located in a gap, 0 for other operations
    usable: NDArray[np.bool_]  # [n] whether the list satisfies the rules of the benchmark


def drawn(operation: str, chance: Floats) -> Lists:
    """Sample lists for an operation from uniform numbers [CHANCES, n] in [0, 1)."""
    lengths = whole(chance[0], 2, LONGEST)
    centre = whole(chance[1], *_CENTRES)
    least, most = _CENTRES
    above = _ABOVE_MEANS if operation in _MEANS else _ABOVE_OTHERS
    spread = whole(chance[2], np.maximum(least, centre - _BELOW), np.minimum(centre + above, most))
    digits = whole(chance[3], np.clip(centre - spread + 2, 1, MOST_DIGITS), MOST_DIGITS)
    middle = np.where(chance[5] < 0.5, -1, 1) * (1 + 9 * chance[4]) * power(centre)
    present = np.arange(LONGEST)[:, None] < lengths
    offsets = np.where(present, (2 * chance[8:] - 1) * power(spread), 0.0)
    values = middle + (offsets - offsets.sum(axis=0) / lengths)  # the mean is the center
    inside = is_inside(values)
    numbers = rounded(np.where(inside, values, 1.0), digits)
    numbers = Decimals(*(np.where(present, column, 0) for column in numbers))
    values = np.where(present, numbers.values, np.inf)
    order = np.argsort(values, axis=0, kind="stable")
    ascending = np.take_along_axis(values, order, axis=0)
    apart = _are_above(ascending[1:], ascending[:-1]) | ~present[1:]
    usable = np.logical_and.reduce(np.concatenate([inside | ~present, apart]))
    references, choices = Decimals(*np.zeros((2, len(lengths)), np.int64)), np.zeros_like(lengths)
    if operation == "interval":
        numbers = Decimals(*(np.take_along_axis(column, order, axis=0) for column in numbers))
        choices = whole(chance[6], 0, lengths)
        ends = _ends(ascending, lengths, power(spread), choices)
        references, between = _between(ends, chance[7])
        usable &= between
    elif operation in _MEANS:
        usable &= _are_answered(operation, numbers, lengths)
    else:
        choices = (chance[6] < 0.5).astype(np.int64)
    return Lists(numbers, lengths, choices, references, usable)


def _ends(ascending: Floats, lengths: Ints, spread: Floats, gaps: Ints) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of gaps, float64[n] each.

    The outer gaps extend one spread beyond the numbers.
    """
    rows = np.arange(len(lengths))
    first, last = ascending[0], ascending[lengths - 1, rows]
    low = np.where(gaps > 0, ascending[np.maximum(gaps - 1, 0), rows], first - spread)
    inner = ascending[np.minimum(gaps, lengths - 1), rows]
    return low, np.where(gaps < lengths, inner, last + spread)


def _between(ends: tuple[Floats, Floats], share: Floats) -> tuple[Decimals, NDArray[np.bool_]]:
    """Sample a number in each gap; return whether it is valid and differs from both ends."""
    low, high = ends
    values = low + share * (high - low)
    inside = is_inside(values)
    numbers = rounded(np.where(inside, values, 1.0), np.full(len(share), MOST_DIGITS))
    return numbers, inside & _are_above(numbers.values, low) & _are_above(high, numbers.values)


def _are_above(more: Floats, less: Floats) -> NDArray[np.bool_]:
    """Return whether numbers (any shape) are larger than others, also as decimals.

    False for numbers that differ by no more than three roundings each.
    """
    with np.errstate(invalid="ignore"):  # of the padding
        apart: NDArray[np.bool_] = more - less > _DOUBT * np.maximum(np.abs(more), np.abs(less))
    return apart


def _are_answered(operation: str, numbers: Decimals, lengths: Ints) -> NDArray[np.bool_]:
    """Return whether means or standard deviations have a magnitude of the benchmark, not 0.

    They are computed exactly if numbers cancel to beyond the precision of float64.
    """
    values = numbers.values
    present = np.arange(LONGEST)[:, None] < lengths
    results = values.sum(axis=0) / lengths
    if operation == "std":
        results = np.sqrt((np.square(values - results) * present).sum(axis=0) / lengths)
    sizes, largest = np.abs(results), np.abs(values).max(axis=0)
    answered = is_inside(results)
    for row in np.flatnonzero((sizes < 2.0**-40 * largest) | (sizes < 2 * LEAST)).tolist():
        columns = (column[: lengths[row], row].tolist() for column in numbers)
        written = [exact(*parts) for parts in zip(*columns, strict=True)]
        answer = Decimal(mean(written) if operation == "mean" else deviation(written))
        answered[row] = abs(answer) >= Decimal(str(LEAST))
    return answered


def mean(numbers: list[Decimal]) -> str:
    """Return the mean of ``numbers``, rounded to 15 digits.

    >>> mean([Decimal(1), Decimal("2.5"), Decimal(4)])
    '2.5'
    """
    return quotient(_sum(numbers), Decimal(len(numbers)))


def deviation(numbers: list[Decimal]) -> str:
    """Return the population standard deviation of ``numbers``, rounded to 15 digits.

    >>> deviation([Decimal(1), Decimal(3)])
    '1'
    """
    count = Decimal(len(numbers))
    # n^2 times the variance needs no division, so it is exact.
    squares = _sum([EXACT.multiply(number, number) for number in numbers])
    total = _sum(numbers)
    scaled = EXACT.subtract(EXACT.multiply(count, squares), EXACT.multiply(total, total))
    return quotient(EXACT.sqrt(scaled), count)


def _sum(numbers: list[Decimal]) -> Decimal:
    return reduce(EXACT.add, numbers, Decimal(0))


def difficulty(operation: str, numbers: list[Decimal]) -> int:
    """Return the difficulty of a list.

    For means and standard deviations, this is the number of nonzero digits; for comparisons, it is
    the length of the longest common prefix (in digits) of two adjacent numbers in sorted order.

    >>> difficulty("sorting", [Decimal("1.25"), Decimal("-3"), Decimal("1.27")])
    2
    """
    if operation in _MEANS:
        return sum(map(nonzero_digits, numbers))
    return max(_alike(*pair) for pair in pairwise(sorted(numbers)))


def _alike(first: Decimal, second: Decimal) -> int:
    """Return the number of leading digits in common; 0 if the sign or magnitude differs."""
    if first.is_signed() != second.is_signed() or first.adjusted() != second.adjusted():
        return 0
    pairs = zip(first.as_tuple().digits, second.as_tuple().digits, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
