"""range-nll: negative log-likelihood after scaling the train range to [0, 1]."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class RangeNll(LogScore):
    """Mean of -log density at the true value, in nats, like ``in-support-nll``, but after scaling
    the range of the train split to [0, 1]. A uniform distribution over that range scores 0, so data
    sets with different units can be compared.

    >>> from numtok.metrics.base import Predictions
    >>> columns = {"log_density": [-1, -3], "log_range": [2, 2], "outside": [False, False]}
    >>> RangeNll().plain(Predictions.of([0, 0], [0, 0], **columns))
    0.0
    """

    revision = 2
    source = "Decoding-based Regression, Appendix D: targets are scaled to [0, 1]"
    undefined = "all true values lie outside, or the density at one inside is zero or unknown"
    needs = ("log_density", "log_range", "outside")
