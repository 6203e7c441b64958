"""label-nll: negative log-likelihood of the true label."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class LabelNll(LogScore):
    """The mean of -log probability of the true label, in nats: the cross-entropy that is learnt.
    To give all of k labels the same probability costs log k. A row whose label the model does not
    know (its log-probability is NaN) has none and is left out; ``n`` says how many are not.

    >>> from numtok.metrics.base import Predictions
    >>> LabelNll().plain(Predictions.of_labels(["a", "b"], ["a", "b"], log_probability=[-1, -2]))
    1.5
    >>> some = Predictions.of_labels(["a", "c"], ["a", "b"], log_probability=[-1, float("nan")])
    >>> LabelNll().counted(some)
    array([ True, False])
    """

    revision = 2
    measures = "labels"
    bounds = NOT_NEGATIVE
    undefined = "a true label has probability 0"
    needs = ("log_probability",)
