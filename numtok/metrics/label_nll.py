"""label-nll: negative log-likelihood of the true label."""

from dataclasses import dataclass

from numtok.metrics._log_score import LogScore
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class LabelNll(LogScore):
    """Mean of -log probability of the true label, in nats: the cross-entropy that training
    minimizes. A uniform prediction over k labels scores log k. Rows whose label is not in the train
    split (log probability NaN) are skipped; ``n`` is the number of remaining rows.

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
