"""nll: negative log-likelihood of the truth under the predictive distribution."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics.base import MeanMetric, Predictions, Values


@dataclass(frozen=True)
class Nll(MeanMetric):
    """The mean of -log density of the truth, in nats, for numbers in the units of the text: a
    density per unit, so it may be negative, and in other units it differs by a constant.

    >>> Nll().plain(Predictions.of([0, 0], [0, 0], log_density=[-1, -2]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Gneiting & Raftery (2007), Section 4.1, the logarithmic score"
    better: ClassVar[Literal["lower"]] = "lower"
    undefined: ClassVar[str] = "the density of a truth is zero, or not known"
    needs: ClassVar[tuple[str, ...]] = ("log_density",)

    def values(self, answers: Predictions) -> Values:
        assert answers.log_density is not None
        return -answers.log_density
