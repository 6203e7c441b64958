"""curves: functions of one variable that are hard to fit in different ways."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import normal_quantiles, uniforms
from numtok.data.tasks.base import TableTask, TaskSplit, setting
from numtok.errors import unknown


class _Curve(NamedTuple):
    """A function with its formula and its range of x."""

    formula: str
    low: float
    high: float
    function: Callable[[Floats], Floats]


_CURVES = {
    "line": _Curve("2x - 1", -1, 1, lambda x: 2 * x - 1),
    "sine": _Curve("sin x", -6, 6, np.sin),
    "high-frequency": _Curve("sin 100x", -1, 1, lambda x: np.sin(100 * x)),
    "chirp": _Curve("sin x^2", 0, 12, lambda x: np.sin(x * x)),
    "kink": _Curve("|x|", -1, 1, np.abs),
    "steep": _Curve("tanh 100x", -1, 1, lambda x: np.tanh(100 * x)),
    "step": _Curve("1 where x >= 0 and 0 elsewhere", -1, 1, lambda x: (x >= 0).astype(np.float64)),
    "staircase": _Curve("floor x", -5, 5, np.floor),
    "sawtooth": _Curve("x - floor x", -4, 4, lambda x: x - np.floor(x)),
    "spikes": _Curve(
        "exp(-1000 (x - k)^2), where k is the integer nearest to x",
        -3,
        3,
        lambda x: np.exp(-1000 * (x - np.rint(x)) ** 2),
    ),
    "exponential": _Curve("exp x", -20, 20, np.exp),
    "power": _Curve("x^9", -10, 10, lambda x: x**9),
    "reciprocal": _Curve("1 / x", -1, 1, lambda x: 1 / x),
}


_NOISIEST = 1e300  # samples are several times larger and must be finite


@dataclass(frozen=True)
class Curves(TableTask):
    """One feature x, uniform on a range, and y = f(x), optionally with Gaussian noise.

    Decoding-based Regression shows plots of such functions (smooth functions, high frequencies,
    jumps, steep slopes, and values over many orders of magnitude), but gives no formulas or ranges.
    The choices of ``--curve`` and their ranges of x are:

    line: 2x - 1 on [-1, 1]; sine: sin x on [-6, 6]; high-frequency: sin 100x on [-1, 1]; chirp: sin
    x^2 on [0, 12]; kink: |x| on [-1, 1]; steep: tanh 100x on [-1, 1]; step: 1 where x >= 0 and 0
    elsewhere, on [-1, 1]; staircase: floor x on [-5, 5]; sawtooth: x - floor x on [-4, 4]; spikes:
    exp(-1000 (x - k)^2), where k is the integer nearest to x, on [-3, 3]; exponential: exp x on
    [-20, 20]; power: x^9 on [-10, 10]; reciprocal: 1 / x on [-1, 1].

    >>> x, y = Curves("kink").unit(0, TaskSplit("train", 2), 0)
    >>> x.round(3).tolist(), y.round(3).tolist()
    ([[-0.946], [-0.861]], [0.946, 0.861])

    Raises UsageError if the curve is unknown, or if the noise is negative or infinite.
    """

    revision = 1
    source = "Decoding-based Regression, section 4.1, Figure 4"
    unit_rows = 1 << 17
    digest = "7c43c563caa713dc"

    curve: str = setting("sine", "Function, one of those above.")
    noise: float = setting(
        0.0, "Standard deviation of the noise added to y.", at_least=0, at_most=_NOISIEST
    )

    def __post_init__(self) -> None:
        if self.curve not in _CURVES:
            raise unknown("curve", self.curve, _CURVES)

    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        curve = _CURVES[self.curve]
        position, quantile = uniforms(seed, split, index, self.rows_of(split, index), 2)
        x = curve.low + (curve.high - curve.low) * position
        y = curve.function(x)
        if self.noise:
            y += self.noise * normal_quantiles(quantile)
        return x[:, None], y
