"""crps: continuous ranked probability score of the predictive distribution."""

from dataclasses import dataclass

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class Crps(MeanMetric):
    """Continuous ranked probability score: mean of the integral of (F(x) - 1{x >= y})^2 over x,
    where F is the predictive distribution function and y the true value. The score has the units of
    the numbers. For a point prediction, it equals the absolute error.

    >>> Crps().plain(Predictions.of([0, 0], [0, 0], crps=[0.25, 0.75]))
    0.5
    """

    revision = 1
    source = "Gneiting & Raftery (2007), equation 20"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "the score of a number is infinite or unknown"
    needs = ("crps",)

    def values(self, answers: Predictions) -> Values:
        assert answers.crps is not None
        return answers.crps
