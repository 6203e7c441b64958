"""range-nll: negative log-likelihood on the scale on which the train range is [0, 1]."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class RangeNll(LogScore):
    """``in-support-nll`` of targets that are scaled by the range of the train split: 0 is what a
    uniform distribution over that range has, and data sets of different units compare.

    >>> from numtok.metrics.base import Predictions
    >>> columns = {"log_density": [-1, -3], "log_range": [2, 2], "outside": [False, False]}
    >>> RangeNll().plain(Predictions.of([0, 0], [0, 0], **columns))
    0.0
    """

    revision = 2
    source = "Decoding-based Regression, Appendix D: targets are scaled to [0, 1]"
    undefined = "all truths lie outside, or the density of one within is zero or not known"
    needs = ("log_density", "log_range", "outside")
