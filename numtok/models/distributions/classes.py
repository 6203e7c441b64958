"""Numbers said by several classes, each on its own, such as residues."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from numtok.models.distributions.predictive import Floats, drawn_places
from numtok.models.distributions.prefix_tree import Symbols
from numtok.models.distributions.samples import SampledPredictive


@dataclass(frozen=True, eq=False)
class IndependentClasses(SampledPredictive):
    """``n`` numbers, each an atom of K independent classes; known by draws but for single numbers.

    logs
        For each class variable float64[n, size]; each row sums to 1.
    classes, numbers
        From numbers float64[m] to classes int64[m, K], and back.

    >>> logs = [np.log([[0.9, 0.1]]), np.log([[0.2, 0.8]])]
    >>> def bits(values):
    ...     return np.stack([values // 2 % 2, values % 2], axis=1).astype(np.int64)
    >>> one = IndependentClasses(logs, bits, lambda classes: classes @ np.array([2.0, 1.0]))
    >>> one.mode().tolist(), np.exp(one.log_density(np.array([3.0]))).round(2).tolist()
    ([1.0], [0.08])
    """

    logs: Sequence[Floats]
    classes: Callable[[Floats], Symbols]
    numbers: Callable[[Symbols], Floats]

    def log_density(self, values: Floats) -> Floats:
        """See the base: the mass of the number's own classes, if these say it."""
        known = np.where(np.isfinite(values), values, 0.0)
        classes, rows = self.classes(known), np.arange(len(values))
        total: Floats = sum(
            (log[rows, own] for log, own in zip(self.logs, classes.T, strict=True)),
            start=np.zeros(len(values)),
        )
        return np.where(self.numbers(classes) == values, total, -np.inf)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        drawn = [drawn_places(np.exp(log), count, rng).ravel() for log in self.logs]
        return self.numbers(np.stack(drawn, axis=1)).reshape(-1, count)

    def mode(self) -> Floats:
        """See the base: the most probable classes."""
        return self.numbers(np.stack([log.argmax(axis=1) for log in self.logs], axis=1))
