"""What the metrics of a probability or a density share."""

from numtok.arrays import Floats
from numtok.metrics.base import MeanMetric, Predictions, Values


class LogScore(MeanMetric):
    """The mean of minus a logarithm, in nats: of the first column in ``needs``."""

    source = "Gneiting & Raftery (2007), Section 4.1, the logarithmic score"
    better = "lower"

    def values(self, answers: Predictions) -> Values:
        logarithms: Floats = getattr(answers, self.needs[0])
        return -logarithms
