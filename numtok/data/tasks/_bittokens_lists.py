"""Two to five numbers around a centre, as BitTokens' benchmark draws them."""

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
CHANCES = 8 + LONGEST  # shares that a list is drawn by
_CENTRES = (-12, 12)  # decades
_BELOW, _ABOVE_MEANS, _ABOVE_OTHERS = 15, 16, 1  # decades from the centre to the spread
_MEANS = ("mean", "std")
_DOUBT = 2.0**-50  # relative, of two float64 that are decimals to three roundings each
LETTERS = "ABCDEF"  # of the gaps between numbers, and beside them


class Lists(NamedTuple):
    """``n`` lists: their numbers [LONGEST, n], 0 behind the last, how long each is, which direction
    or gap is asked for, the number that is looked for in a gap, else 0, and which lists are of the
    benchmark."""

    numbers: Decimals
    lengths: Ints
    choices: Ints
    references: Decimals
    usable: NDArray[np.bool_]


def drawn(operation: str, chance: Floats) -> Lists:
    """Lists of an operation, by shares [CHANCES, n] in [0, 1)."""
    lengths = whole(chance[0], 2, LONGEST)
    centre = whole(chance[1], *_CENTRES)
    least, most = _CENTRES
    above = _ABOVE_MEANS if operation in _MEANS else _ABOVE_OTHERS
    spread = whole(chance[2], np.maximum(least, centre - _BELOW), np.minimum(centre + above, most))
    digits = whole(chance[3], np.clip(centre - spread + 2, 1, MOST_DIGITS), MOST_DIGITS)
    middle = np.where(chance[5] < 0.5, -1, 1) * (1 + 9 * chance[4]) * power(centre)
    there = np.arange(LONGEST)[:, None] < lengths
    offsets = np.where(there, (2 * chance[8:] - 1) * power(spread), 0.0)
    values = middle + (offsets - offsets.sum(axis=0) / lengths)  # so that the mean is the centre
    inside = is_inside(values)
    numbers = rounded(np.where(inside, values, 1.0), digits)
    numbers = Decimals(*(np.where(there, one, 0) for one in numbers))
    values = np.where(there, numbers.values, np.inf)
    order = np.argsort(values, axis=0, kind="stable")
    ascending = np.take_along_axis(values, order, axis=0)
    apart = _are_above(ascending[1:], ascending[:-1]) | ~there[1:]
    usable = np.logical_and.reduce(np.concatenate([inside | ~there, apart]))
    references, choices = Decimals(*np.zeros((2, len(lengths)), np.int64)), np.zeros_like(lengths)
    if operation == "interval":
        numbers = Decimals(*(np.take_along_axis(one, order, axis=0) for one in numbers))
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
    """float64[n] each: where gaps begin and end; the outer ones reach a spread beyond the
    numbers."""
    rows = np.arange(len(lengths))
    first, last = ascending[0], ascending[lengths - 1, rows]
    low = np.where(gaps > 0, ascending[np.maximum(gaps - 1, 0), rows], first - spread)
    inner = ascending[np.minimum(gaps, lengths - 1), rows]
    return low, np.where(gaps < lengths, inner, last + spread)


def _between(ends: tuple[Floats, Floats], share: Floats) -> tuple[Decimals, NDArray[np.bool_]]:
    """A number in each gap, and whether it is one of the benchmark, and no end."""
    low, high = ends
    values = low + share * (high - low)
    inside = is_inside(values)
    found = rounded(np.where(inside, values, 1.0), np.full(len(share), MOST_DIGITS))
    return found, inside & _are_above(found.values, low) & _are_above(high, found.values)


def _are_above(more: Floats, less: Floats) -> NDArray[np.bool_]:
    """Whether numbers of any shape are larger than others, decimals too whose float64 these are;
    what lies closer together than three roundings each is not."""
    with np.errstate(invalid="ignore"):  # of places behind the last number
        apart: NDArray[np.bool_] = more - less > _DOUBT * np.maximum(np.abs(more), np.abs(less))
    return apart


def _are_answered(operation: str, numbers: Decimals, lengths: Ints) -> NDArray[np.bool_]:
    """Whether means or deviations are of a size that the benchmark has; 0 is none. Where numbers
    cancel out so far that float64 leaves doubt, they are worked out exactly."""
    values = numbers.values
    there = np.arange(LONGEST)[:, None] < lengths
    found = values.sum(axis=0) / lengths
    if operation == "std":
        found = np.sqrt((np.square(values - found) * there).sum(axis=0) / lengths)
    sizes, largest = np.abs(found), np.abs(values).max(axis=0)
    answered = is_inside(found)
    for row in np.flatnonzero((sizes < 2.0**-40 * largest) | (sizes < 2 * LEAST)).tolist():
        columns = (column[: lengths[row], row].tolist() for column in numbers)
        written = [exact(*parts) for parts in zip(*columns, strict=True)]
        answer = Decimal(mean(written) if operation == "mean" else deviation(written))
        answered[row] = abs(answer) >= Decimal(str(LEAST))
    return answered


def mean(numbers: list[Decimal]) -> str:
    """To 15 digits.

    >>> mean([Decimal(1), Decimal("2.5"), Decimal(4)])
    '2.5'
    """
    return quotient(_sum(numbers), Decimal(len(numbers)))


def deviation(numbers: list[Decimal]) -> str:
    """The standard deviation of numbers as a population, to 15 digits.

    >>> deviation([Decimal(1), Decimal(3)])
    '1'
    """
    count = Decimal(len(numbers))
    # n^2 times the variance is a difference of whole multiples: exact.
    squares = _sum([EXACT.multiply(one, one) for one in numbers])
    total = _sum(numbers)
    scaled = EXACT.subtract(EXACT.multiply(count, squares), EXACT.multiply(total, total))
    return quotient(EXACT.sqrt(scaled), count)


def _sum(numbers: list[Decimal]) -> Decimal:
    return reduce(EXACT.add, numbers, Decimal(0))


def difficulty(operation: str, numbers: list[Decimal]) -> int:
    """Of means: digits other than 0; of what is compared, the most digits that two numbers which
    come next to each other begin with alike.

    >>> difficulty("sorting", [Decimal("1.25"), Decimal("-3"), Decimal("1.27")])
    2
    """
    if operation in _MEANS:
        return sum(map(nonzero_digits, numbers))
    return max(_alike(*pair) for pair in pairwise(sorted(numbers)))


def _alike(one: Decimal, other: Decimal) -> int:
    """Count the leading digits that two numbers share; none if their sign or size differs."""
    if one.is_signed() != other.is_signed() or one.adjusted() != other.adjusted():
        return 0
    pairs = zip(one.as_tuple().digits, other.as_tuple().digits, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
