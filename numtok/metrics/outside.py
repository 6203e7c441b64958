"""outside: how many truths lie outside the range of the train split."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class Outside(Metric):
    """The share of truths below the least or above the greatest number of their target in the train
    split. It is a property of the data: no prediction changes it.

    >>> Outside().plain(Predictions.of([1, 9], [0, 0], outside=[False, True]))
    0.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "numtok: what a normalisation to the train range cannot hold"
    better: ClassVar[Literal["neither"]] = "neither"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "it is not known of a truth"
    needs: ClassVar[tuple[str, ...]] = ("outside",)

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.outside is not None
        return mean(answers.outside.astype(np.float64))
