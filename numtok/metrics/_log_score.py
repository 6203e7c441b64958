"""Base class for metrics that are negative log-likelihoods."""

from functools import reduce
from operator import add

from numtok.arrays import Bools, Floats
from numtok.metrics.base import MeanMetric, Predictions, Values


class LogScore(MeanMetric):
    """Base class for metrics that are a mean negative log-likelihood, in nats. The value of a row
    is minus the sum of the columns in ``needs`` that contain logarithms. A metric that also needs
    ``outside`` skips true values outside the range of the train split.
    """

    source = "Gneiting & Raftery (2007), Section 4.1, the logarithmic score"
    better = "lower"

    def counted(self, answers: Predictions) -> Bools:
        counted = self.is_known(answers)
        if "outside" in self.needs and answers.outside is not None:
            counted &= ~answers.outside
        return counted

    def values(self, answers: Predictions) -> Values:
        logarithms = [getattr(answers, name) for name in self.needs if name.startswith("log_")]
        total: Floats = reduce(add, logarithms)
        return -total
