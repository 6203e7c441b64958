"""Base classes for value heads that predict classes, a density or a single value.

A subclass of :class:`ClassesHead` defines K variables (such as digits, bits or residues), the
number of classes per variable, and the conversion of numbers to classes and back. The base class
provides the linear map, the loss, the point prediction and the distribution.

A subclass of :class:`PointHead` predicts one value and is trained with the mean squared error. Its
distribution is a Gaussian around the prediction. The variance is the same for every number and
equals the mean squared error on validation data.

Shapes: N numbers, K variables, P logits.
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.normalizers.base import Scaling, no_scaling
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import IndependentClasses
from numtok.models.heads.base import CalibratedReader, Calibration, ValueHead, ValueReader
from numtok.models.precision import in_float64, on_host

_LARGEST = float(np.finfo(np.float32).max)


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
