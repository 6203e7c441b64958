"""outside: how many truths lie outside the range of the train split."""

from dataclasses import dataclass

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class Outside(ShareMetric):
    """The share of truths below the least or above the greatest number of their target in the train
    split. It is a property of the data: no prediction changes it.

    >>> Outside().plain(Predictions.of([1, 9], [0, 0], outside=[False, True]))
    0.5
    """

    revision = 1
    source = "numtok: what a normalisation to the train range cannot hold"
    better = "neither"
    needs = ("outside",)

    def values(self, answers: Predictions) -> Values:
        assert answers.outside is not None
        return answers.outside
