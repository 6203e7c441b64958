"""tailed-nll: negative log-likelihood with fixed tail probabilities outside the train range."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class TailedNll(LogScore):
    """Mean of -log density at the true value in nats, like ``nll``, but with a fixed probability
    for numbers outside the range of the train split (see ``distributions.tailed``). It therefore
    stays finite, and comparable between models, even if a histogram or a normalized decoder assigns
    zero probability to a true value outside that range.

    >>> from numtok.metrics.base import Predictions
    >>> TailedNll().plain(Predictions.of([0, 0], [0, 0], log_density_tailed=[-1, -2]))
    1.5
    """

    revision = 1
    undefined = "the density at a true value is zero or unknown"
    needs = ("log_density_tailed",)
