"""interval-nll: negative log-probability of the rounding interval around the true value."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class IntervalNll(LogScore):
    """Mean of -log P(y - r/2 < X <= y + r/2), in nats, where r is the resolution at which the true
    value y was recorded. Unlike a density, this probability has no unit and is at most 1. A model
    therefore cannot gain from an arbitrarily high density at a few values that are repeated often.

    >>> from numtok.metrics.base import Predictions
    >>> IntervalNll().plain(Predictions.of([0, 0], [0, 0], log_interval=[-1, -2]))
    1.5
    """

    revision = 1
    source = "Lindsey (1999), Some Statistical Heresies: the likelihood of what is recorded"
    bounds = NOT_NEGATIVE
    undefined = "the probability of a true value is zero or unknown"
    needs = ("log_interval",)
