"""tailed-nll: negative log-likelihood where what lies outside the train range has stated tails."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics.base import MeanMetric, Predictions, Values


@dataclass(frozen=True)
class TailedNll(MeanMetric):
    """The mean of -log density of the truth, in nats, as ``nll``, but with a stated probability of
    lying outside the range of the train split (``distributions.tailed``): so it is defined, and
    compares, where a histogram or a normalised decoder gives a truth no probability at all.

    >>> TailedNll().plain(Predictions.of([0, 0], [0, 0], log_density_tailed=[-1, -2]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Gneiting & Raftery (2007), Section 4.1, the logarithmic score"
    better: ClassVar[Literal["lower"]] = "lower"
    undefined: ClassVar[str] = "the density of a truth is zero, or not known"
    needs: ClassVar[tuple[str, ...]] = ("log_density_tailed",)

    def values(self, answers: Predictions) -> Values:
        assert answers.log_density_tailed is not None
        return -answers.log_density_tailed
