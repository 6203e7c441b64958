"""Description of the numbers in one field, computed from statistics and a sample of the field."""

from dataclasses import dataclass

import numpy as np

from numtok.analysis.profiling.field_statistics import NumberStatistics, most
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.unit import Counted
from numtok.arrays import Floats, Ints
from numtok.encoding.normalizers.base import Moments
from numtok.numerals.column import Numerals

#: A standard deviation below this fraction of the mean is far below the magnitude of the numbers.
HIGH_LEVEL = 0.05
_HEAVY = 15.0  # interquartile ranges from the median to the furthest number; 3 for a normal one


@dataclass(frozen=True, kw_only=True)
class FieldProfile:
    """Description of the numbers in one field.

    ``rows`` and ``common`` (the most frequent value) are exact or, if ``*_exact`` is false,
    estimated from a sample; ``distinct`` is then accurate to about 3%. Fractions are relative to
    all numbers in the field. Digits are significant digits without zeros at either end (0.0120 and
    1200 have 2), and decimals are digits after the point as written. Both ignore numbers that are
    zero. The mean, the standard deviation and the extremes cover only values in the range of
    float64; ``outside`` counts the others (such as 1e400). A statistic that is undefined is None.
    """

    name: str
    numbers: int
    rows: int
    rows_exact: bool
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    quartiles: tuple[float, float, float] | None  # of the sample
    smallest: float | None  # magnitude of a number that is not 0
    largest: float | None
    decades: float | None  # log10(largest / smallest)
    negative: float
    zero: float
    integer: float
    outside: int
    after_comma: float  # in running text, numbers that may be the decimals of 12,5
    digits_median: int | None
    digits_most: int | None  # MOST_DIGITS means that many or more
    decimals_median: int | None
    decimals_most: int | None
    distinct: int
    distinct_exact: bool
    common: float | None
    common_share: float
    common_exact: bool
    sampled: int

    @property
    def high_level(self) -> bool:
        """True if the numbers vary by far less than their magnitude, such as 1,000,000 ± 5."""
        if self.mean is None or self.deviation is None:
            return False
        return 0 < self.deviation < HIGH_LEVEL * abs(self.mean)


def field_profile(node: int, name: str, counted: Counted) -> FieldProfile:
    """Return the profile of the field ``name``, whose statistics are at ``node`` in ``counted``."""
    tally, sample = counted.tallies[node], counted.sample.at(node)
    count, moments = tally.numbers, tally.moments
    values = Numerals.read(sample.literals).values
    finite = np.isfinite(values)
    smallest, largest = tally.least, tally.most
    common, share, exact = _common(tally, values, sample.weights)
    rows, rows_exact = counted.rows_at(node)
    return FieldProfile(
        name=name,
        numbers=count,
        rows=rows,
        rows_exact=rows_exact,
        low=moments.low if moments.count else None,
        high=moments.high if moments.count else None,
        mean=_finite(moments.mean) if moments.count else None,
        deviation=_deviation(moments),
        quartiles=_quartiles(values[finite], sample.weights[finite]),
        smallest=smallest if largest > 0 else None,
        largest=largest if largest > 0 else None,
        decades=float(np.log10(largest) - np.log10(smallest)) if largest > 0 else None,
        negative=tally.negative / count,
        zero=tally.zero / count,
        integer=tally.integer / count,
        outside=tally.outside,
        after_comma=tally.after_comma / count if counted.fields.in_words(node) else 0.0,
        digits_median=_median(tally.digits),
        digits_most=most(tally.digits),
        decimals_median=_median(tally.decimals),
        decimals_most=most(tally.decimals),
        distinct=min(tally.distinct.number, count),
        distinct_exact=tally.distinct.exact,
        common=_finite(common),
        common_share=share,
        common_exact=exact,
        sampled=len(sample),
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _deviation(moments: Moments) -> float | None:
    """Return the standard deviation; None if squared differences exceed or underflow float64."""
    if not moments.count or (moments.squares == 0 and moments.low < moments.high):
        return None
    return _finite(moments.deviation)


def _common(tally: NumberStatistics, values: Floats, weights: Ints) -> tuple[float, float, bool]:
    """Return the most frequent value, its fraction, and whether the result is exact.

    If several values are equally frequent, the smallest is returned.
    """
    if tally.distinct.exact:
        values, weights, exact = tally.distinct.values, tally.distinct.counts, True
    else:
        values, index = np.unique(values, return_inverse=True)
        totals = np.zeros(len(values), np.int64)
        np.add.at(totals, index, weights)
        weights, exact = totals, False
    if not len(values):
        return np.nan, 0.0, False
    best = min(np.flatnonzero(weights == weights.max()).tolist(), key=lambda k: values[k])
    return float(values[best]), float(weights[best] / weights.sum()), exact


def _quartiles(values: Floats, weights: Ints) -> tuple[float, float, float] | None:
    """Return the values below which a quarter, half and three quarters of the weight lie."""
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    low, middle, high = (
        float(values[order][np.searchsorted(share, part)]) for part in (0.25, 0.5, 0.75)
    )
    return low, middle, high


def _median(counts: Ints) -> int | None:
    """Return the median of values that are counted by their size."""
    if not counts.any():
        return None
    return int(np.searchsorted(np.cumsum(counts), (counts.sum() + 1) // 2))


def is_heavy_tailed(
    low: float | None, high: float | None, quartiles: tuple[float, float, float] | None
) -> bool:
    """Return whether the smallest or the largest of some numbers lies very far from the others."""
    if low is None or high is None or quartiles is None:
        return False
    first, median, third = quartiles
    return max(high - median, median - low) > _HEAVY * (third - first) > 0


def shown_range(field: FieldProfile) -> str:
    """Format the range of a field with enough digits to tell its ends apart: ``0.9848 to 1``."""
    if field.low is None or field.high is None:
        return "no value in the range of float64"
    if field.low == field.high:
        return f"{'only' if field.outside else 'always'} {short_value(field.low)}"
    step = field.high - field.low
    return f"{short_value(field.low, step)} to {short_value(field.high, step)}"
