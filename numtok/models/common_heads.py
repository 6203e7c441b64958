"""Base classes for value heads that predict classes, a histogram, a density or a single value.

A subclass of :class:`ClassesHead` defines K variables (such as digits, bits or residues), the
number of classes per variable, and the conversion of numbers to classes and back. The base class
provides the linear map, the loss, the point prediction and the distribution.

A subclass of :class:`HistogramHead` predicts the probabilities of equal bins of the training
range, and a subclass of :class:`HistogramReader` computes them from the hidden state.

A subclass of :class:`PointHead` predicts one value and is trained with the mean squared error. Its
distribution is a Gaussian around the prediction. The variance is the same for every number and
equals the mean squared error on validation data.

Shapes: N numbers, K variables, P logits.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.encoding.normalizers.base import Scaling, no_scaling
from numtok.models.distributions.intervals import Intervals
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import IndependentClasses
from numtok.models.heads.base import (
    CalibratedReader,
    Calibration,
    TokenReader,
    ValueHead,
    ValueReader,
    tiled,
)
from numtok.models.precision import in_float64, on_host

_LARGEST = float(np.finfo(np.float32).max)
_MOST_BINS = 1 << 20


class ClassesHead(ValueHead):
    """Base class for value heads that predict K class variables of a number independently."""

    exact: ClassVar[bool] = True

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """Number of classes for each variable, at least 2."""

    @abstractmethod
    def classes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, K]: the classes of ``values`` float64[N], which are finite."""

    @abstractmethod
    def numbers(self, classes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return float64[N]: the numbers that classes int64[N, K] stand for.

        Every combination of classes must be accepted.
        """

    def describe(self) -> str:
        return "independent classes, each combination a number"

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, K]: the classes of each value. A value that is not finite has the same
        classes as 0."""
        return self.classes(np.where(np.isfinite(values), values, 0.0))

    def distribution(self, logs: Sequence[NDArray[np.float64]]) -> Predictive:
        """Return the distribution of N numbers, given the log-probabilities of their classes.

        ``logs`` contains one array float64[N, k, size] for each run of ``k`` consecutive variables
        with the same number of classes.
        """
        every = [log[:, index] for log in logs for index in range(log.shape[1])]
        return IndependentClasses(every, self.classes, self.numbers)

    def build(self, width: int) -> ValueReader:
        return ClassesReader(self, width)


class LinearReader(ValueReader):
    """:class:`ValueReader` that maps hidden states linearly to the parameters of a distribution.

    Its point prediction is the median.
    """

    def __init__(self, width: int, parameters: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, parameters)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        logits: Tensor = self.linear(hidden_ND)
        return logits.float()

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """Return float64[N]: the median of each distribution."""
        return self.predictive(parameters_NP, {}, no_scaling()).median()


class ClassesReader(ValueReader):
    """:class:`ValueReader` that maps hidden states linearly to the logits of a
    :class:`ClassesHead`.

    A variable with two classes has one logit; any other variable has one logit per class. The loss
    is the mean cross-entropy over all variables.
    """

    def __init__(self, head: ClassesHead, width: int | None) -> None:
        """Create the linear map, unless ``width`` is None. A subclass that passes None must define
        its own ``forward``."""
        super().__init__()
        self.head = head
        self.runs = [(size, len([*run])) for size, run in groupby(head.sizes)]
        if width is not None:
            self.linear = nn.Linear(width, sum(self._widths))

    @property
    def _widths(self) -> list[int]:
        """Number of logits of each run of variables of equal size."""
        return [count if size == 2 else count * size for size, count in self.runs]

    def forward(self, hidden_ND: Tensor) -> Tensor:
        logits: Tensor = self.linear(hidden_ND)
        return logits.float()

    def summed_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """Return [N]: for each number, the cross-entropy summed over all variables."""
        total = parameters_NP.new_zeros(len(parameters_NP))
        targets = torch.split(targets_NW, [count for _, count in self.runs], dim=1)
        logits = torch.split(parameters_NP, self._widths, dim=1)
        parts = zip(self.runs, logits, targets, strict=True)
        for (size, count), logits_NP, target_Nk in parts:
            if size == 2:
                ones_Nk = target_Nk.to(logits_NP.dtype)
                each = F.binary_cross_entropy_with_logits(logits_NP, ones_Nk, reduction="none")
            else:
                logits_NkJ = logits_NP.reshape(-1, count, size)
                each = F.cross_entropy(logits_NkJ.mT, target_Nk, reduction="none")
            total = total + each.sum(dim=1)
        return total

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.summed_losses(parameters_NP, targets_NW) / targets_NW.shape[1]

    def logs(self, parameters_NP: Tensor) -> list[NDArray[np.float64]]:
        """Return the log-probabilities of the classes.

        There is one array float64[N, k, size] for each run of ``k`` consecutive variables with the
        same number of classes.
        """
        logs = []
        parts = torch.split(in_float64(parameters_NP), self._widths, dim=1)
        for (size, count), logits_NP in zip(self.runs, parts, strict=True):
            if size == 2:
                logs.append(on_host(F.logsigmoid(torch.stack([-logits_NP, logits_NP], dim=2))))
            else:
                logs.append(on_host(logits_NP.reshape(-1, count, size).log_softmax(dim=2)))
        return logs

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """Return float64[N]: the number made of the most probable classes. It can be infinite or
        NaN."""
        best = [log.argmax(axis=2) for log in self.logs(parameters_NP)]
        return self.head.numbers(np.concatenate(best, axis=1))

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return self.head.distribution(self.logs(parameters_NP))


@dataclass(frozen=True)
class HistogramHead(ValueHead):
    """Base class for value heads that predict the probabilities of ``bins`` equal bins.

    The bins cover the range of the train split, scaled to [0, 1]. A bin includes its lower edge;
    the last bin includes both edges. For a number outside the range, the target is the nearest bin,
    and the density is zero.
    """

    normalizer: ClassVar[str] = "unit"
    bounded: ClassVar[bool] = True
    positional: ClassVar[str] = "bins"
    bins: int = setting(help="Number of bins.", at_least=2, at_most=_MOST_BINS)

    def targets(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return int64[N, 1]: the bin of each value; that of 0 for NaN."""
        return _bins(np.nan_to_num(values), self.bins)[:, None]

    def describe(self) -> str:
        return f"histogram of {self.bins} equal bins over the range of the train split"


class HistogramReader(LinearReader, TokenReader):
    """:class:`ValueReader` of a :class:`HistogramHead`: a linear map to logits of the bins.

    The loss is the negative log-density on the scale of [0, 1], -log p_bin - log bins, in nats. A
    subclass with other parameters than logits overrides :meth:`log_mass`.
    """

    def __init__(self, width: int, bins: int, parameters: int | None = None) -> None:
        """Create the linear map to ``parameters`` values, or to one per bin."""
        super().__init__(width, bins if parameters is None else parameters)
        self.bins = bins
        self.tokens_per_number = 1

    def log_mass(self, parameters_NP: Tensor) -> Tensor:
        """Return [N, bins]: the log-probability of each bin."""
        return parameters_NP.log_softmax(dim=1)

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.token_losses(parameters_NP, targets_NW) - math.log(self.bins)

    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """Return [N]: the cross-entropy of the bins, each of which counts as one token."""
        return F.nll_loss(self.log_mass(parameters_NP), targets_NW[:, 0], reduction="none")

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Intervals:
        edges = scaling.inverse(np.arange(self.bins + 1) / self.bins)
        centers = scaling.inverse((np.arange(self.bins) + 0.5) / self.bins)
        log_mass = on_host(self.log_mass(tiled(in_float64(parameters_NP))))[: len(parameters_NP)]

        def places(values: NDArray[np.float64]) -> NDArray[np.int64]:
            scaled = scaling.forward(values)
            return np.where((scaled >= 0) & (scaled <= 1), _bins(scaled, self.bins), -1)

        return Intervals(
            low=edges[:-1],
            high=edges[1:],
            values=centers,
            log_mass=log_mass,
            places=places,
            by_density=True,
        )


def _bins(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """int64[n]: the bin of each value, with the same edges as the density: k / bins as float64."""
    ends = np.arange(1, bins) / bins
    return np.searchsorted(ends, values, "right").astype(np.int64)


class RealHead(ValueHead):
    """Base class for value heads that are trained directly on the normalized value."""

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return float32[N, 1]: the values, clipped to the range of float32; 0 for values that are
        not finite."""
        finite = np.where(np.isfinite(values), values, 0.0)
        return np.clip(finite, -_LARGEST, _LARGEST).astype(np.float32)[:, None]

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[N]: True for values within the range of float32."""
        return np.abs(values) <= _LARGEST


class PointHead(RealHead):
    """Base class for value heads that predict one value.

    The predictive distribution is a Gaussian around the predicted value. Its standard deviation is
    the root mean squared error on validation data.
    """

    def describe(self) -> str:
        return "Gaussian around the prediction, with the validation error as standard deviation"


class PointReader(CalibratedReader):
    """:class:`ValueReader` whose ``module`` maps each hidden state to one predicted value, [N, D]
    to [N, 1]."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, hidden_ND: Tensor) -> Tensor:
        prediction: Tensor = self.module(hidden_ND)
        return prediction

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return (parameters_NP[:, 0].float() - targets_NW[:, 0]).square()

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        return on_host(parameters_NP[:, 0])

    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        errors = self.point(parameters_NP) - values
        # An error of exactly zero would give a distribution without width.
        return {"deviation": float(max(np.sqrt(np.mean(errors**2)), 1e-12))}

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return Mixture.single(self.point(parameters_NP), calibration["deviation"], scaling)
