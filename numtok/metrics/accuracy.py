"""accuracy: how many labels are right."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._labels import hits
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of rows whose predicted label is the true one.

    >>> Accuracy().plain(Predictions.of_labels(["a", "b", "b"], ["a", "b", "a"]))
    0.6666666666666666
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Table 1"
    measures: ClassVar[Literal["labels"]] = "labels"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "there are no labels"

    def statistic(self, answers: Predictions) -> Statistic:
        return mean(hits(answers))
