"""nll: negative log-likelihood of the true value under the predictive distribution."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class Nll(LogScore):
    """Mean of -log density at the true value, in nats. The density is per unit of the numbers in
    the text, so the metric may be negative, and a change of units shifts it by a constant.

    >>> from numtok.metrics.base import Predictions
    >>> Nll().plain(Predictions.of([0, 0], [0, 0], log_density=[-1, -2]))
    1.5
    """

    revision = 1
    undefined = "the density at a true value is zero or unknown"
    needs = ("log_density",)
