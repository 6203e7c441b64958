"""tailed-nll: negative log-likelihood where what lies outside the train range has stated tails."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore


@dataclass(frozen=True)
class TailedNll(LogScore):
    """The mean of -log density of the truth, in nats, as ``nll``, but with a stated probability of
    lying outside the range of the train split (``distributions.tailed``): so it is defined, and
    compares, where a histogram or a normalised decoder gives a truth no probability at all.

    >>> from numtok.metrics.base import Predictions
    >>> TailedNll().plain(Predictions.of([0, 0], [0, 0], log_density_tailed=[-1, -2]))
    1.5
    """

    revision = 1
    undefined = "the density of a truth is zero, or not known"
    needs = ("log_density_tailed",)
