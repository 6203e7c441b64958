"""Descriptions, in words, of the numbers in a field."""

from typing import Any

import msgspec
import numpy as np

from numtok.analysis.profiling.field_profile import FieldProfile, is_heavy_tailed
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.warnings import COMMON, percent
from numtok.arrays import Floats
from numtok.names import counted

_FEW = 20  # different values
_WIDE = 3.0  # decades


class FieldSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Description of the numbers in one field of the texts, or in one table column.

    integer, negative
        Fraction of the numbers that are integers, and fraction that are negative.
    decimals
        Largest number of decimal places; None if all numbers are integers, or if unknown.
    decades
        log10 of the ratio of the largest to the smallest nonzero magnitude; None if there are only
        zeros.
    distinct, common, common_share
        Number of distinct values, the most frequent value, and the fraction of numbers that are
        equal to it.
    heavy_tail
        True if the smallest or the largest number lies very far from the others.
    words
        The description in words.
    """

    name: str
    numbers: int
    low: float | None
    high: float | None
    quartiles: tuple[float, float, float] | None
    integer: float
    negative: float
    decimals: int | None
    decades: float | None
    distinct: int
    common: float | None
    common_share: float
    heavy_tail: bool = False
    words: str = ""

    @staticmethod
    def of_profile(profile: FieldProfile) -> "FieldSummary":
        """Describe a field of the texts, given its profile."""
        return _described(
            name=profile.name,
            numbers=profile.numbers,
            low=profile.low,
            high=profile.high,
            quartiles=profile.quartiles,
            integer=profile.integer,
            negative=profile.negative,
            decimals=profile.decimals_most,
            decades=profile.decades,
            distinct=profile.distinct,
            common=profile.common,
            common_share=profile.common_share,
        )

    @staticmethod
    def of_column(name: str, values: Floats) -> "FieldSummary":
        """Describe a table column that has at least one value. ``values`` (float64[n]) must be
        finite."""
        different, counts = np.unique(values, return_counts=True)
        sizes = np.abs(values[values != 0])
        return _described(
            name=name,
            numbers=len(values),
            low=float(different[0]),
            high=float(different[-1]),
            quartiles=tuple(np.quantile(values, [0.25, 0.5, 0.75]).tolist()),
            integer=float(np.mean(values == np.round(values))),
            negative=float(np.mean(values < 0)),
            decimals=None,
            decades=float(np.log10(sizes.max() / sizes.min())) if len(sizes) else None,
            distinct=len(different),
            common=float(different[counts.argmax()]),
            common_share=float(counts.max() / len(values)),
        )


def _described(**measured: Any) -> FieldSummary:
    """Return a summary with the given fields, and those that follow from them."""
    plain = FieldSummary(**measured)
    heavy = is_heavy_tailed(plain.low, plain.high, plain.quartiles)
    field = msgspec.structs.replace(plain, heavy_tail=heavy)
    return msgspec.structs.replace(field, words=_words(field))


def _words(field: FieldSummary) -> str:
    """Describe a field: ``1.2 to 97, middle half 12 to 44, up to 2 decimals, heavy-tailed``."""
    if field.low is None or field.high is None:
        return "no value in the range of float64"
    if field.low == field.high:
        return f"always {short_value(field.low)}"
    step = field.high - field.low
    parts = [f"{short_value(field.low, step)} to {short_value(field.high, step)}"]
    if field.quartiles is not None:
        first, _, third = (short_value(quartile, step) for quartile in field.quartiles)
        parts.append(f"middle half {first} to {third}")
    if field.integer == 1:
        parts.append("whole numbers")
    elif field.decimals:
        parts.append(f"up to {counted(field.decimals, 'decimal')}")
    if 0 < field.negative < 1:
        parts.append(f"{percent(field.negative)} negative")
    if field.distinct <= _FEW:
        parts.append(f"{field.distinct} distinct values")
    if field.common is not None and field.common_share >= COMMON:
        parts.append(f"{percent(field.common_share)} are {short_value(field.common)}")
    if field.decades is not None and field.decades >= _WIDE:
        parts.append(f"{field.decades:.0f} orders of magnitude")
    if field.heavy_tail:
        parts.append("heavy-tailed")
    return ", ".join(parts)
