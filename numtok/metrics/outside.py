"""outside: fraction of true values outside the range of the train split."""

from dataclasses import dataclass

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class Outside(ShareMetric):
    """Fraction of true values outside the range of their target in the train split. This is a
    property of the data and does not depend on the predictions.

    >>> Outside().plain(Predictions.of([1, 9], [0, 0], outside=[False, True]))
    0.5
    """

    revision = 1
    source = "numtok: the numbers that a normalization to the train range cannot represent"
    better = "neither"
    needs = ("outside",)

    def values(self, answers: Predictions) -> Values:
        assert answers.outside is not None
        return answers.outside
