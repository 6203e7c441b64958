"""How numbers are read off a model of tables: points of a distribution, or of draws from it."""

from dataclasses import dataclass, field

import numpy as np

from numtok.arrays import Floats
from numtok.errors import UsageError
from numtok.models.distributions.decoded import DecoderDistribution
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import Empirical, harrell_davis
from numtok.models.distributions.sampling import Sampling
from numtok.reports import QUANTILES
from numtok.seeds import generator
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.training.trained_table import LearntFrom

POINTS = ("median", "mean", "mode", "raft")
_GRID = 100  # values that an expectation over a grid is taken over


@dataclass(frozen=True)
class TableOptions:
    """How numbers are read off.

    point
        ``median``, ``mean`` or ``mode`` of the distribution, or ``raft``: the expectation over
        100 evenly spaced values of the train split's range, each by the probability of what is
        nearest to it (Lukasik et al. 2025, who take that of its tokens).
    draws
        Numbers drawn in place of the exact distribution; 0: none. Then the median and all other
        quantiles are those of Harrell and Davis.
    sampling
        How a decoder draws them.
    """

    point: str = "median"
    draws: int = 0
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise UsageError(
                f"--point {self.point!r} is not possible for a table; allowed are "
                f"{', '.join(POINTS)}"
            )
        if self.draws < 0:
            raise UsageError(f"--num-samples {self.draws} is not possible; at least 0")
        if self.draws == 0 and self.sampling != Sampling():
            raise UsageError(
                "--temperature, --top-k and --top-p change how numbers are drawn; give "
                "--num-samples N "
                "with them"
            )
        if self.draws and self.point == "raft":
            raise UsageError(
                "--point raft needs densities, which draws have not; leave --num-samples out"
            )

    @classmethod
    def of(cls, mode: EvalConfig | PredictConfig) -> "TableOptions":
        """As a command was asked; UsageError for what is not possible."""
        sampling = Sampling(mode.temperature, mode.top_k, mode.top_p)
        return cls(mode.point or "median", mode.draws, sampling)

    def used(self, exact: Predictive, model: str, fold: int, first: int) -> Predictive:
        """What points and quantiles are of: the distribution itself, or numbers drawn from it, by
        the fold and the first of its rows.

        Raises UsageError for tokens of a ``model`` that has none.
        """
        if not self.draws:
            return exact
        random, sampling = generator(0, "draws", fold, first), self.sampling
        if isinstance(exact, DecoderDistribution):
            return Empirical(exact.drawn(self.draws, random, sampling))
        if sampling != Sampling():
            raise UsageError(
                "--temperature, --top-k and --top-p change the tokens that a decoder draws; "
                f"{model} has none, so leave them out"
            )
        return Empirical(exact.sample(self.draws, random))

    def values(self, used: Predictive, n: int, learnt_from: LearntFrom) -> Floats:
        """float64[n]: the points of ``n`` rows."""
        if self.point == "raft":
            grid = np.linspace(learnt_from.low, learnt_from.high, _GRID)
            points = over_grid(used, n, grid)
            if np.isnan(points).all():
                raise UsageError(
                    "--point raft needs densities, which the head of this model does not say; give "
                    "median, mean or mode"
                )
            return points
        if self.point == "median" and isinstance(used, Empirical):
            return harrell_davis(used.values)
        values: Floats = getattr(used, self.point)()
        return values

    def quantiles(self, used: Predictive) -> Floats:
        """float64[n, levels]: those that are kept, ``QUANTILES``."""
        if isinstance(used, Empirical):
            return np.stack([harrell_davis(used.values, level) for level in QUANTILES], axis=1)
        return used.quantiles(QUANTILES)


def over_grid(predictive: Predictive, n: int, grid: Floats) -> Floats:
    """float64[n]: the mean over the values of an even grid float64[g] for n distributions.

    Each value is weighted by the probability of what is nearest to it, or, where only a density is
    known, by that: a density says too much of values with a narrow cell of their own.
    """
    half = (grid[1] - grid[0]) / 2
    columns = []
    for value in grid.tolist():
        log_p = predictive.log_interval(np.full(n, value - half), np.full(n, value + half))
        density = predictive.log_density(np.full(n, value)) if np.isnan(log_p).any() else log_p
        columns.append(density)
    logs = np.stack(columns, axis=1)
    most = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - np.where(np.isfinite(most), most, 0.0))
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        means: Floats = np.einsum("ng,g->n", weights, grid) / total
    return means
