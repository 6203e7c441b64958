"""in-support-nll: negative log-likelihood of the truths within the train range."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class InSupportNll(LogScore):
    """The mean of -log density, in nats, as ``nll``, of those truths alone that lie in the range
    of the train split. What it leaves out is the ``outside`` share: read the two together.

    >>> from numtok.metrics.base import Predictions
    >>> columns = {"log_density": [-1, -float("inf"), -2], "outside": [False, True, False]}
    >>> InSupportNll().plain(Predictions.of([0, 9, 0], [0, 0, 0], **columns))
    1.5
    """

    revision = 2
    undefined = "all truths lie outside, or the density of one within is zero or not known"
    needs = ("log_density", "outside")
