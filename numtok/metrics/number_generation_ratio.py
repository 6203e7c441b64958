"""number-generation-ratio: fraction of predictions that are valid numbers."""

from dataclasses import dataclass

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class NumberGenerationRatio(ShareMetric):
    """Number generation ratio (NGR): fraction of predictions that are a single finite number,
    whether right or wrong.

    >>> import numpy as np
    >>> answers = Predictions.of([1, 2], [1, 1.5])._replace(valid=np.array([True, False]))
    >>> NumberGenerationRatio().plain(answers)
    0.5
    """

    revision = 1
    source = "NumGPT, Experiments, Evaluation Metrics"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        return answers.valid
