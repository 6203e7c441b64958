"""bbob: the 24 noiseless functions of the Black-Box Optimization Benchmarking suite."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import uniforms
from numtok.data.tasks.base import TableTask, TaskSplit, setting
from numtok.errors import UsageError, needing

# Functions that are defined in one dimension; the others divide by dimension - 1 or are constant
# (Rosenbrock).
_OF_ONE_DIMENSION = (1, 2, 10, 11)
# COCO's rotations are for up to 40 dimensions; with many more the process crashes.
_LARGEST_DIMENSION = 40


@dataclass(frozen=True)
class Bbob(TableTask):
    """Points x, uniform on [-5, 5] in each dimension, with the values y = f(x) of a BBOB function.

    The functions are defined as in COCO (the package coco-experiment); each instance has its own
    optimum, rotation and offset: 1 sphere, 2 separable ellipsoid, 3 separable Rastrigin,
    4 Büche-Rastrigin, 5 linear slope, 6 attractive sector, 7 step ellipsoid, 8 Rosenbrock,
    9 rotated Rosenbrock, 10 ellipsoid, 11 discus, 12 bent cigar, 13 sharp ridge, 14 different
    powers, 15 Rastrigin, 16 Weierstrass, 17 Schaffer F7, 18 ill-conditioned Schaffer F7,
    19 Griewank-Rosenbrock, 20 Schwefel, 21 Gallagher with 101 peaks, 22 Gallagher with 21 peaks,
    23 Katsuura, 24 Lunacek. Only 1, 2, 10 and 11 are defined in one dimension.

    >>> x, y = Bbob(dimension=2).unit(0, TaskSplit("train", 2), 0)
    >>> x.round(2).tolist(), y.round(2).tolist()
    ([[-4.73, 1.13], [-4.3, 0.48]], [109.52, 102.92])

    Raises UsageError if the function, the dimension or the instance is invalid.
    """

    revision = 1
    source = "Decoding-based Regression, section 4.1, Table 1 and Figure 11"
    unit_rows = 1 << 15
    digest = "4e708234827b3028"
    notes: ClassVar[list[str]] = [
        "values are those of COCO, where each instance has its own optimum and offset; the paper "
        "names no instance, so its values may differ"
    ]

    function: int = setting(1, "Number of the function.", at_least=1, at_most=24)
    dimension: int = setting(5, "Number of features.", at_least=1, at_most=_LARGEST_DIMENSION)
    instance: int = setting(1, "Instance, which has its own optimum.", at_least=1, at_most=1000)

    def __post_init__(self) -> None:
        if self.dimension == 1 and self.function not in _OF_ONE_DIMENSION:
            raise UsageError(
                f"bbob: function={self.function} is not defined for dimension=1. Use function "
                f"{', '.join(map(str, _OF_ONE_DIMENSION))}, or dimension=2 or more"
            )

    @property
    def features(self) -> list[str]:
        return [f"x{k}" for k in range(1, self.dimension + 1)]

    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        with needing("bbob", "coco-experiment"):
            from cocoex import BareProblem
        rows = self.rows_of(split, index)
        x = np.ascontiguousarray(uniforms(seed, split, index, rows, self.dimension).T) * 10 - 5
        function = BareProblem("bbob", self.function, self.dimension, self.instance)
        return x, np.asarray(function(x), np.float64)
