"""interval-nll: negative log-probability of the interval that the truth stands for."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class IntervalNll(LogScore):
    """The mean of -log P(y - r/2 < X <= y + r/2), in nats, where r is the resolution that the truth
    was recorded at. A probability has no unit, and is never below 0: so it is fair also where
    truths are few values again and again, whose density can be made as high as one likes.

    >>> from numtok.metrics.base import Predictions
    >>> IntervalNll().plain(Predictions.of([0, 0], [0, 0], log_interval=[-1, -2]))
    1.5
    """

    revision = 1
    source = "Lindsey (1999), Some Statistical Heresies: the likelihood of what is recorded"
    bounds = NOT_NEGATIVE
    undefined = "the probability of a truth is zero, or not known"
    needs = ("log_interval",)
