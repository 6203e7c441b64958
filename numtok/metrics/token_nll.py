"""token-nll: cross-entropy per token of the truth."""

from dataclasses import dataclass

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class TokenNll(MeanMetric):
    """The mean over numbers of the cross-entropy of the truth's tokens, divided by how many there
    are; in nats. It does not compare between tokenizations: many tokens of which most are trivial
    make it small, and no width of an interval is in it. The published likelihoods of the decoders
    in Decoding-based Regression agree with this figure.

    >>> TokenNll().plain(Predictions.of([0, 0], [0, 0], token_nll=[0.5, 0.75]))
    0.625
    """

    revision = 1
    source = "Decoding-based Regression, Tables 2 and 3 (inferred: no formula is given there)"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "a token of a truth has no probability, or it is not known"
    needs = ("token_nll",)

    def values(self, answers: Predictions) -> Values:
        assert answers.token_nll is not None
        return answers.token_nll
