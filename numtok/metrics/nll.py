"""nll: negative log-likelihood of the truth under the predictive distribution."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class Nll(LogScore):
    """The mean of -log density of the truth, in nats, for numbers in the units of the text: a
    density per unit, so it may be negative, and in other units it differs by a constant.

    >>> from numtok.metrics.base import Predictions
    >>> Nll().plain(Predictions.of([0, 0], [0, 0], log_density=[-1, -2]))
    1.5
    """

    revision = 1
    undefined = "the density of a truth is zero, or not known"
    needs = ("log_density",)
