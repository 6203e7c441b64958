"""densities: conditional distributions p(y | x) of many shapes, with exact densities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import normal_quantiles, uniforms
from numtok.data.tasks.base import TableTask, TaskSplit, setting
from numtok.errors import unknown


class _Standard(NamedTuple):
    """A distribution with location 0 and scale 1: its quantile function and log-density."""

    quantiles: Callable[[Floats], Floats]
    log_density: Callable[[Floats], Floats]


_NORMAL = _Standard(normal_quantiles, lambda z: -(z**2) / 2 - 0.5 * np.log(2 * np.pi))
_UNIFORM = _Standard(  # on [-1, 1]
    lambda u: 2 * u - 1, lambda z: np.where(np.abs(z) <= 1, -np.log(2), -np.inf)
)
_EXPONENTIAL = _Standard(lambda u: -np.log1p(-u), lambda z: np.where(z >= 0, -z, -np.inf))
_STUDENT = _Standard(  # two degrees of freedom: a mean, but no variance
    lambda u: (2 * u - 1) / np.sqrt(2 * u * (1 - u)), lambda z: -1.5 * np.log(2 + z**2)
)


class _Component(NamedTuple):
    """A component of a mixture: its distribution, and its location and scale at each x."""

    standard: _Standard
    location: Callable[[Floats], Floats]
    scale: Callable[[Floats], Floats]


def _constant(value: float) -> Callable[[Floats], Floats]:
    return lambda x: np.full_like(x, value)


def _lines(scale: float, *locations: Callable[[Floats], Floats]) -> tuple[_Component, ...]:
    """Return one Gaussian component around each curve."""
    return tuple(_Component(_NORMAL, location, _constant(scale)) for location in locations)


# Mixtures of equal parts, for x on [-1, 1].
_DENSITIES = {
    "crossing": _lines(0.05, lambda x: x, lambda x: -x),
    "branching": _lines(0.05, lambda x: np.maximum(x, 0), lambda x: -np.maximum(x, 0)),
    "ring": _lines(0.05, lambda x: np.sqrt(1 - x**2), lambda x: -np.sqrt(1 - x**2)),
    "waves": _lines(
        0.1, lambda x: np.sin(3 * x) - 2, lambda x: np.sin(3 * x), lambda x: np.sin(3 * x) + 2
    ),
    "band": (_Component(_UNIFORM, lambda x: np.sin(4 * x), _constant(0.3)),),
    "heteroscedastic": (_Component(_NORMAL, lambda x: x, lambda x: 0.02 + 0.5 * np.abs(x)),),
    "heavy-tail": (_Component(_STUDENT, lambda x: x, _constant(0.1)),),
    "skewed": (_Component(_EXPONENTIAL, lambda x: x, lambda x: 0.2 + 0.1 * x),),
    "uniform": (_Component(_UNIFORM, _constant(0.5), _constant(0.5)),),
    "jump": (
        _Component(
            _UNIFORM, lambda x: np.where(x < 0, -1.0, 1.0), lambda x: np.where(x < 0, 0.1, 0.5)
        ),
    ),
    "checkerboard": (
        _Component(_UNIFORM, lambda x: np.floor(2 * x) % 2 - 2, _constant(0.5)),
        _Component(_UNIFORM, lambda x: np.floor(2 * x) % 2, _constant(0.5)),
    ),
}


@dataclass(frozen=True)
class Densities(TableTask):
    """One feature x, uniform on [-1, 1], and y sampled from a distribution that depends on x.

    Decoding-based Regression shows plots of similar distributions, but gives no formulas. The
    choices of ``--density`` are listed below. Several components form a mixture with equal weights.
    N(m, s) is the normal distribution with mean m and standard deviation s, and U(a, b) is the
    uniform distribution from a to b.

    crossing: N(x, 0.05) and N(-x, 0.05); branching: N(h, 0.05) and N(-h, 0.05), where h is the
    larger of x and 0; ring: N(h, 0.05) and N(-h, 0.05), where h is the height of the unit circle at
    x; waves: N(sin 3x + k, 0.1) for k = -2, 0 and 2; band: U(sin 4x - 0.3, sin 4x + 0.3);
    heteroscedastic: N(x, 0.02 + |x| / 2); heavy-tail: x + t / 10, Student's t with two degrees of
    freedom, which has no variance; skewed: x + an exponential with mean 0.2 + 0.1x; uniform: U(0,
    1) for all x; jump: U(-1.1, -0.9) for x < 0, else U(0.5, 1.5); checkerboard: U(-2.5, -1.5) and
    U(-0.5, 0.5) for x in [-1, -0.5) and [0, 0.5), else U(-1.5, -0.5) and U(0.5, 1.5).

    >>> x, y = Densities("ring").unit(0, TaskSplit("train", 10_000), 0)
    >>> bool(abs(np.hypot(x[:, 0], y).mean() - 1) < 0.01)
    True

    Raises UsageError if the density is unknown.
    """

    revision = 1
    source = "Decoding-based Regression, section 4.3, Figures 7 and 13"
    unit_rows = 1 << 17
    digest = "226379a2825d293f"

    density: str = setting("crossing", "Shape, one of those above.")

    def __post_init__(self) -> None:
        if self.density not in _DENSITIES:
            raise unknown("density", self.density, _DENSITIES)

    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        parts = _DENSITIES[self.density]
        position, choice, share = uniforms(seed, split, index, self.rows_of(split, index), 3)
        x = 2 * position - 1
        chosen = np.floor(choice * len(parts))
        y = np.empty_like(x)
        for k, part in enumerate(parts):
            rows = chosen == k
            quantiles = part.standard.quantiles(share[rows])
            y[rows] = part.location(x[rows]) + part.scale(x[rows]) * quantiles
        return x[:, None], y

    def log_density(self, x: Floats, y: Floats) -> Floats:
        """Return the natural logarithm of p(y | x) [n] for x [n, 1] and y [n]; -inf where p is 0.

        >>> Densities("uniform").log_density(np.zeros((2, 1)), np.array([0.3, 1.2]))
        array([  0., -inf])
        """
        parts = _DENSITIES[self.density]
        each = []
        for part in parts:
            scale = part.scale(x[:, 0])
            z = (y - part.location(x[:, 0])) / scale
            each.append(part.standard.log_density(z) - np.log(scale))
        together: Floats = np.logaddexp.reduce(each) - np.log(len(parts))
        return together
