"""mae: mean absolute error."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class Mae(MeanMetric):
    """The mean of |prediction - truth|, in the units of the numbers.

    >>> Mae().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Hyndman & Koehler (2006), Section 2.1"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = NOT_NEGATIVE
    undefined: ClassVar[str] = "an error is larger than float64 can hold"

    def values(self, answers: Predictions) -> Values:
        return np.abs(answers.prediction - answers.truth)
