"""Decoding options for table models: the kind of point prediction, and whether samples replace the
exact distribution."""

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
_GRID = 100  # number of values in the grid of ``raft``


@dataclass(frozen=True)
class TableOptions:
    """Decoding options for table models.

    point
        ``median``, ``mean`` or ``mode`` of the distribution, or ``raft``: the expectation over 100
        evenly spaced values in the range of the train split, each weighted by the probability of
        its cell (Lukasik et al. 2025 use the probability of the value's tokens).
    draws
        Number of samples that replace the exact distribution; 0 to use the exact distribution. The
        median and other quantiles of samples are estimated with the method of Harrell and Davis.
    sampling
        Sampling options, for decoder heads only.
    """

    point: str = "median"
    draws: int = 0
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise UsageError(
                f"--point must be one of {', '.join(POINTS)} for a table model (got {self.point!r})"
            )
        if self.draws < 0:
            raise UsageError(f"--num-samples must be at least 0 (got {self.draws})")
        if self.draws == 0 and self.sampling != Sampling():
            raise UsageError(
                "--temperature, --top-k and --top-p only apply to sampling. Add --num-samples N"
            )
        if self.draws and self.point == "raft":
            raise UsageError(
                "--point raft needs densities and cannot be combined with --num-samples. Remove "
                "--num-samples"
            )

    @classmethod
    def of(cls, mode: EvalConfig | PredictConfig) -> "TableOptions":
        """Build the options from command settings. Raises UsageError if they are invalid."""
        sampling = Sampling(mode.temperature, mode.top_k, mode.top_p)
        return cls(mode.point or "median", mode.draws, sampling)

    def distribution(self, exact: Predictive, model: str, fold: int, first: int) -> Predictive:
        """Return the distribution from which points and quantiles are computed: ``exact``, or
        samples from it.

        The samples are seeded by ``fold`` and by ``first``, the index of the first row. Raises
        UsageError if options for sampling tokens are set but the head is not a decoder; the message
        contains the name ``model``.
        """
        if not self.draws:
            return exact
        random, sampling = generator(0, "draws", fold, first), self.sampling
        if isinstance(exact, DecoderDistribution):
            return Empirical(exact.drawn(self.draws, random, sampling))
        if sampling != Sampling():
            raise UsageError(
                "--temperature, --top-k and --top-p only apply to decoder heads; "
                f"{model} has no decoder. Remove them"
            )
        return Empirical(exact.sample(self.draws, random))

    def values(self, used: Predictive, n: int, learnt_from: LearntFrom) -> Floats:
        """Return the point predictions for ``n`` rows, float64[n], given their distribution
        ``used``. Raises UsageError if ``point`` is ``raft`` but the head provides no densities."""
        if self.point == "raft":
            grid = np.linspace(learnt_from.low, learnt_from.high, _GRID)
            points = over_grid(used, n, grid)
            if np.isnan(points).all():
                raise UsageError(
                    "--point raft needs densities, which the head of this model does not provide. "
                    "Use median, mean or mode"
                )
            return points
        if self.point == "median" and isinstance(used, Empirical):
            return harrell_davis(used.values)
        values: Floats = getattr(used, self.point)()
        return values

    def quantiles(self, used: Predictive) -> Floats:
        """Return the quantiles of the distribution ``used`` at the levels ``QUANTILES``, float64[n,
        levels]."""
        if isinstance(used, Empirical):
            return np.stack([harrell_davis(used.values, level) for level in QUANTILES], axis=1)
        return used.quantiles(QUANTILES)


def over_grid(predictive: Predictive, n: int, grid: Floats) -> Floats:
    """Return the means of n distributions, float64[n], approximated on an evenly spaced grid
    float64[g].

    Each value of the grid is weighted by the probability of its cell. If only the density is known,
    values are weighted by the density instead, which gives too much weight to narrow peaks.
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
