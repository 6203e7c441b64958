"""Digits of truth and prediction side by side, as NUPA compares them (Yang et al. 2025).

A number has three parts: the digits before the point, those after it, and those
of the exponent. The truth's notation is the one that counts: a prediction in
another (a scheme writes 12300.0 where the text has 1.23e4, or 1e-05 for 1e-5) is
rewritten exactly, and its decimals are left out where the truth has no point.
Zeros behind the last decimal count as digits: 0.1 lacks one of 0.10. As published,
signs are not compared. Otherwise than published, a prediction without a point for a
truth that has one is not a failure: it lacks the decimals, and nothing more.
"""

from collections.abc import Iterator

from numtok.metrics._literals import numerals
from numtok.metrics.base import Predictions

Parts = tuple[str, str, str]  # before the point, after it, exponent


def parts(answers: Predictions) -> Iterator[tuple[Parts, Parts | None]]:
    """The parts of each truth, and of its prediction or None where that is not valid."""
    for truth, prediction in numerals(answers):
        yield truth.parts, prediction and prediction.written_like(truth).parts
