"""number-generation-ratio: how many predictions are numbers at all."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class NumberGenerationRatio(Metric):
    """NGR: the share of predictions that are one finite number, right or wrong.

    >>> answers = Predictions.of([1, 2], [1, 1.5])._replace(valid=np.array([True, False]))
    >>> NumberGenerationRatio().plain(answers)
    0.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Experiments, Evaluation Metrics"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "there are no numbers"

    def statistic(self, answers: Predictions) -> Statistic:
        return mean(answers.valid.astype(np.float64))
