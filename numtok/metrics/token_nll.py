"""token-nll: cross-entropy per token of the truth."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class TokenNll(Metric):
    """The mean over numbers of the cross-entropy of the truth's tokens, divided by how many there
    are; in nats. It does not compare between tokenizations: many tokens of which most are trivial
    make it small, and no width of an interval is in it. The published likelihoods of the decoders
    in Decoding-based Regression agree with this figure.

    >>> TokenNll().plain(Predictions.of([0, 0], [0, 0], token_nll=[0.5, 0.75]))
    0.625
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = (
        "Decoding-based Regression, Tables 2 and 3 (inferred: no formula is given there)"
    )
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    undefined: ClassVar[str] = "a token of a truth has no probability, or it is not known"
    needs: ClassVar[tuple[str, ...]] = ("token_nll",)
    known: ClassVar[str] = "token_nll"

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.token_nll is not None
        return mean(answers.token_nll)
