"""The common half of metrics of conformal prediction intervals."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.arrays import Floats
from numtok.metrics.base import Predictions


@dataclass(frozen=True)
class OfIntervals:
    """Metric of the 90% intervals that were calibrated on rows outside the train split."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Romano, Patterson & Candès (2019), Conformalized quantile regression"
    needs: ClassVar[tuple[str, ...]] = ("interval_low", "interval_high")

    @staticmethod
    def ends(answers: Predictions) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of the intervals, float64[n]."""
        assert answers.interval_low is not None and answers.interval_high is not None
        return answers.interval_low, answers.interval_high
