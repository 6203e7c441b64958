"""crps: continuous ranked probability score of the predictive distribution."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class Crps(Metric):
    """The mean of the integral of (F(x) - 1{x >= y})^2 over x, in the units of the numbers; of
    a distribution that is one point, the absolute error. Each predictive distribution computes
    its own.

    >>> Crps().plain(Predictions.of([0, 0], [0, 0], crps=[0.25, 0.75]))
    0.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Gneiting & Raftery (2007), equation 20"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    undefined: ClassVar[str] = "the score of a number is infinite, or not known"
    needs: ClassVar[tuple[str, ...]] = ("crps",)
    known: ClassVar[str] = "crps"

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.crps is not None
        return mean(answers.crps)
