"""rounded-match: how many predictions round to the truth as it is written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Bools, Floats
from numtok.metrics._literals import numerals
from numtok.metrics.base import Predictions, ShareMetric, Values

# What Arrow reads to the nearest float64, its group commas away; exact decimals read all else.
_PLAIN = (
    r"^(?P<value>-?[0-9]+(?:\.(?P<decimals>[0-9]*))?(?:[eE](?P<exponent>[-+]?[0-9]{1,3}))?)"
    r"(?P<percent>%?)$"
)


@dataclass(frozen=True)
class RoundedMatch(ShareMetric):
    """The share of predictions that are the truth when they are rounded, half to even, to the last
    place that the truth's literal has: units of 1302 and 1,302, tens of 1.30e3, hundredths of 0.10
    and of 23%. A head that says values is hardly ever exactly the truth; this says how often a
    reader who writes as the text does would have it right. Rounding is of decimals as they are
    written, never of floats. What is not valid is no match.

    >>> literals = {"truth_literal": ["1302", "1.30e3", "0.10", "0.10"]}
    >>> literals["prediction_literal"] = ["1301.98", "1304.9", "0.0951", "0.11"]
    >>> found = [1301.98, 1304.9, 0.0951, 0.11]
    >>> RoundedMatch().plain(Predictions.of([1302, 1300, 0.1, 0.1], found, **literals))
    0.75
    """

    revision = 1
    source = "rounding, as any table of values is read"
    better = "higher"
    needs = ("truth_literal", "prediction_literal")

    def values(self, answers: Predictions) -> Values:
        matches, open_ = _by_floats(answers)
        left = answers.take(np.flatnonzero(open_))
        matches[open_] = [
            prediction is not None and prediction.rounded(truth.place) == truth.exact()
            for truth, prediction in numerals(left)
        ]
        return matches


def _by_floats(answers: Predictions) -> tuple[Bools, Bools]:
    """Which match, bool[n], and which floats cannot tell, bool[n]: those at the edge of rounding,
    with more digits than a float has, or not written plainly."""
    assert answers.truth_literal is not None and answers.prediction_literal is not None
    truth, place = _read(answers.truth_literal)
    prediction, _ = _read(answers.prediction_literal)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = 0.5 * 10.0**place
        distance = np.abs(prediction - truth)
        # Each of the three is read or worked out to a few units in the last of 53 bits; below the
        # second term that is not so.
        slack = 2.0**-50 * (np.abs(prediction) + np.abs(truth) + half) + 1e-300
        matches = answers.valid & (distance < half - slack)
        told = matches | ~answers.valid | (distance > half + slack)
    return matches, ~told | ~np.isfinite(truth)


def _read(literals: Sequence[str | None]) -> tuple[Floats, Floats]:
    """The values of literals, float64[n], and the powers of ten of their last places, float64[n];
    NaN for what is not written plainly."""
    text = pc.replace_substring(pa.array(literals, pa.large_string()), ",", "")
    parts = pc.extract_regex(text, _PLAIN)

    def part(name: str) -> "pa.Array":
        return pc.struct_field(parts, name)

    digits = pc.utf8_length(part("decimals"))
    exponent = pc.replace_substring(part("exponent"), "+", "")
    exponent = pc.if_else(pc.equal(exponent, ""), "0", exponent)
    hundredths = 2.0 * _floats(pc.equal(part("percent"), "%"))
    place = _floats(pc.cast(exponent, pa.int64())) - _floats(digits) - hundredths
    value = _floats(pc.cast(part("value"), pa.float64())) / 10.0**hundredths
    return value, place


def _floats(column: "pa.Array") -> Floats:
    """float64[n], NaN for null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
