"""in-support-nll: negative log-likelihood of the true values within the train range."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class InSupportNll(LogScore):
    """Mean of -log density at the true value, in nats, like ``nll``, but only over true values
    within the range of the train split. The metric ``outside`` is the fraction of skipped values;
    always read the two together.

    >>> from numtok.metrics.base import Predictions
    >>> columns = {"log_density": [-1, -float("inf"), -2], "outside": [False, True, False]}
    >>> InSupportNll().plain(Predictions.of([0, 9, 0], [0, 0, 0], **columns))
    1.5
    """

    revision = 2
    undefined = "all true values lie outside, or the density at one inside is zero or unknown"
    needs = ("log_density", "outside")
