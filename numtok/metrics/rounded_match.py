"""rounded-match: fraction of predictions that round to the true value as written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Bools, Floats
from numtok.metrics._literals import numerals
from numtok.metrics.base import Predictions, ShareMetric, Values

# Literals (without group commas) that Arrow parses to the nearest float64. All others are parsed as
# exact decimals.
_PLAIN = (
    r"^(?P<value>-?[0-9]+(?:\.(?P<decimals>[0-9]*))?(?:[eE](?P<exponent>[-+]?[0-9]{1,3}))?)"
    r"(?P<percent>%?)$"
)


@dataclass(frozen=True)
class RoundedMatch(ShareMetric):
    """Fraction of predictions that equal the true value when rounded (ties to even) to the place of
    its last written digit: to units for 1302 and 1,302, to tens for 1.30e3, to hundredths for 0.10
    and 23%.

    Heads that predict values are almost never exactly right. This metric counts predictions that
    are right at the precision with which the true value is written. Decimals are rounded as
    written, never as floats. An invalid prediction is not a match.

    >>> literals = {"truth_literal": ["1302", "1.30e3", "0.10", "0.10"]}
    >>> literals["prediction_literal"] = ["1301.98", "1304.9", "0.0951", "0.11"]
    >>> values = [1301.98, 1304.9, 0.0951, 0.11]
    >>> RoundedMatch().plain(Predictions.of([1302, 1300, 0.1, 0.1], values, **literals))
    0.75
    """

    revision = 1
    source = "numtok: rounding to the printed precision"
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
    """Return which predictions match, bool[n], and for which floats cannot decide, bool[n].

    Floats cannot decide at the edge of rounding, for more digits than a float has, and for literals
    that :data:`_PLAIN` does not match.
    """
    assert answers.truth_literal is not None and answers.prediction_literal is not None
    truth, power = _read(answers.truth_literal)
    prediction, _ = _read(answers.prediction_literal)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = 0.5 * 10.0**power
        distance = np.abs(prediction - truth)
        # Each of the three is accurate to a few units in the last of 53 bits, except for values
        # below the second term.
        slack = 2.0**-50 * (np.abs(prediction) + np.abs(truth) + half) + 1e-300
        matches = answers.valid & (distance < half - slack)
        decided = matches | ~answers.valid | (distance > half + slack)
    return matches, ~decided | ~np.isfinite(truth)


def _read(literals: Sequence[str | None]) -> tuple[Floats, Floats]:
    """Return the values of literals, float64[n], and the powers of ten of their last digits,
    float64[n]; NaN for literals that :data:`_PLAIN` does not match."""
    text = pc.replace_substring(pa.array(literals, pa.large_string()), ",", "")
    parts = pc.extract_regex(text, _PLAIN)

    def part(name: str) -> pa.Array:
        return pc.struct_field(parts, name)

    digits = pc.utf8_length(part("decimals"))
    exponent = pc.replace_substring(part("exponent"), "+", "")
    exponent = pc.if_else(pc.equal(exponent, ""), "0", exponent)
    hundredths = 2.0 * _floats(pc.equal(part("percent"), "%"))
    power = _floats(pc.cast(exponent, pa.int64())) - _floats(digits) - hundredths
    value = _floats(pc.cast(part("value"), pa.float64())) / 10.0**hundredths
    return value, power


def _floats(column: pa.Array) -> Floats:
    """Convert a column to float64[n], with NaN for null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
