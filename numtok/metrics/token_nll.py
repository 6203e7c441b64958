"""token-nll: mean cross-entropy per token of the true value."""

from dataclasses import dataclass

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class TokenNll(MeanMetric):
    """Mean over numbers of the cross-entropy per token of the true value, in nats. It cannot be
    compared between tokenizations: many trivial tokens make it small, and it ignores the width of
    the interval that the tokens represent. The likelihoods published for the decoders in
    Decoding-based Regression are consistent with this metric.

    >>> TokenNll().plain(Predictions.of([0, 0], [0, 0], token_nll=[0.5, 0.75]))
    0.625
    """

    revision = 1
    source = "Decoding-based Regression, Tables 2 and 3 (inferred: no formula is given there)"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "a token of a true value has zero or unknown probability"
    needs = ("token_nll",)

    def values(self, answers: Predictions) -> Values:
        assert answers.token_nll is not None
        return answers.token_nll
