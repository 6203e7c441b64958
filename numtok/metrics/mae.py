"""mae: mean absolute error."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class Mae(Metric):
    """The mean of |prediction - truth|, in the units of the numbers.

    >>> Mae().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Hyndman & Koehler (2006), Section 2.1"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    undefined: ClassVar[str] = "an error is larger than float64 can hold"

    def statistic(self, answers: Predictions) -> Statistic:
        return mean(np.abs(answers.prediction - answers.truth))
