"""interval-nll: negative log-probability of the interval that the truth stands for."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class IntervalNll(MeanMetric):
    """The mean of -log P(y - r/2 < X <= y + r/2), in nats, where r is the resolution that the truth
    was recorded at. A probability has no unit, and is never below 0: so it is fair also where
    truths are few values again and again, whose density can be made as high as one likes.

    >>> IntervalNll().plain(Predictions.of([0, 0], [0, 0], log_interval=[-1, -2]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = (
        "Lindsey (1999), Some Statistical Heresies: the likelihood of what is recorded"
    )
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = NOT_NEGATIVE
    undefined: ClassVar[str] = "the probability of a truth is zero, or not known"
    needs: ClassVar[tuple[str, ...]] = ("log_interval",)

    def values(self, answers: Predictions) -> Values:
        assert answers.log_interval is not None
        return -answers.log_interval
