"""From columns and targets to a fitted model, and from the model to predictive distributions.

What the target is scaled by, what inputs are made of and the model itself belong
together: whoever fits a table, the ``train`` command or ``numtok.sklearn``, goes
through here.
"""

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.normalizers.base import FittedNormalizer, Moments, Normalizer, fit
from numtok.errors import UsageError
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    TokenHead,
    ValueHead,
    learns_unit_interval,
    tiled,
)
from numtok.models.regressor import Regressor, RegressorSettings
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import settings_of, spec_of
from numtok.seeds import seed_of
from numtok.stored_json import Natural
from numtok.training.features import Features, Inputs
from numtok.training.table_learner import FittingRecipe, TableLearner, TableRows, held_back

_ROUNDING = 16  # spacings of float64: less apart are results of one number
_ROUNDED = 1e-9  # of the unit interval
_AT_ONCE = 1 << 14  # rows that go through the model at a time


def table_head(spec: str) -> ValueHead:
    """The head that a spec stands for; UsageError for one that no model of tables can have."""
    head = HEADS.build(spec)
    if isinstance(head, ValueHead) and not isinstance(head, TokenHead):
        return head
    raise UsageError(
        f"--head {spec} reads tokens of a text, which a table has not; give one that reads values, "
        "such as pointwise, riemann:256, mdn:5 or decoder:ud"
    )


class LearntFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The train split: its rows, and of its raw targets the range, the mean and the resolution.

    resolution
        The smallest gap between two different targets, but for gaps of arithmetic (0.3 and
        0.1 + 0.2); 0 where there is one alone.
    """

    rows: Natural
    low: float
    high: float
    mean: float
    resolution: float

    @classmethod
    def of(cls, target: NDArray[np.float64]) -> "LearntFrom":
        """Of at least one target, float64[n]."""
        different = np.unique(target)
        gaps = np.diff(different)
        gaps = gaps[gaps > _ROUNDING * np.spacing(np.abs(different[1:]))]
        low, high, mean = (float(of(target)) for of in (np.min, np.max, np.mean))
        return cls(
            rows=len(target),
            low=low,
            high=high,
            mean=mean,
            resolution=float(gaps.min()) if len(gaps) else 0.0,
        )

    @property
    def log_range(self) -> float:
        """The logarithm of how wide the range is; of one that is a point 0, as if it were 1."""
        return math.log(self.high - self.low) if self.low < self.high else 0.0

    def outside(self, target: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of other targets, float64[n], lie outside that range."""
        return (target < self.low) | (target > self.high)


class FitRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How fitting went.

    Epochs until it ended, the one whose weights were kept and its validation loss; batches that
    were learnt, and rows, each as often as it was.
    """

    epochs: Natural
    best_epoch: Natural
    best_loss: float
    steps: Natural
    samples: Natural


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTable:
    """A model with everything that its predictions need."""

    model: Regressor
    inputs: Inputs
    scaling: FittedNormalizer
    calibration: Calibration
    learnt_from: LearntFrom
    fit: FitRecord

    def predictive(self, columns: Features) -> Predictive:
        """The distribution of the target of each row, in raw units."""
        parameters = self.parameters(self.inputs.of(columns))
        return self.model.reader.predictive(parameters, self.calibration, self.scaling)

    @torch.no_grad()
    def parameters(self, inputs: NDArray[np.float32]) -> Tensor:
        """[n, P] of the head, from inputs [n, inputs]; on a CPU whatever rows are beside a row."""
        device = next(self.model.parameters()).device
        made = []
        for part in torch.split(torch.from_numpy(inputs), _AT_ONCE):
            made.append(self.model(tiled(part).to(device))[: len(part)])
        return torch.cat(made)


@dataclass(frozen=True, eq=False, kw_only=True)
class Preparation:
    """A model before its first epoch, with what it learns from."""

    fitting: TableLearner
    inputs: Inputs
    scaling: FittedNormalizer
    learnt_from: LearntFrom
    looked_at: TableRows
    looked_at_values: NDArray[np.float64]  # normalised
    unsayable: int  # targets that are given, which the head learns as the nearest it can say

    @classmethod
    def of(
        cls,
        columns: Features,
        target: NDArray[np.float64],
        validation: tuple[Features, NDArray[np.float64]] | None,
        *,
        head: ValueHead,
        trunk: ColumnTrunk,
        normalizer: Normalizer,
        recipe: FittingRecipe,
        device: torch.device,
    ) -> "Preparation":
        """Prepare to train on columns [n] and finite targets float64[n], at least two rows.

        Without ``validation`` rows, a fraction of the others is held back; constants are fitted on
        these too. Raises UsageError for a normalization in which the head cannot predict numbers.
        """
        inputs = Inputs.fit(columns)
        scaling = fit(normalizer, Moments.of(target))
        if head.exact and not scaling.normalizer.identity:
            raise UsageError(
                f"--head {spec_of(head)} learns numbers as they are, and --normalize "
                f"{spec_of(normalizer)} would change them; leave it out, or give none"
            )
        values = scaling.forward(target)
        beyond = int(((values < -_ROUNDED) | (values > 1 + _ROUNDED)).sum())
        if learns_unit_interval(head) and beyond:
            raise UsageError(
                f"--normalize {spec_of(normalizer)} puts {beyond:,} of {len(values):,} targets "
                f"outside of [0, 1], where --head {spec_of(head)} says numbers; leave it out, or "
                f"give {head.normalizer}"
            )
        unsayable = int((~head.representable(values)).sum())
        every = inputs.of(columns)
        if validation is None:
            mine, others = held_back(len(target), recipe.validation, recipe.seed)
            looked_at, looked_at_values = every[others], values[others]
            every, values = every[mine], values[mine]
        else:
            looked_at, looked_at_values = (
                inputs.of(validation[0]),
                scaling.forward(validation[1]),
            )
        torch.manual_seed(seed_of(recipe.seed, "init"))
        model = Regressor(RegressorSettings(inputs.width, trunk, settings_of(head)))
        looking = TableRows(looked_at, head.targets(looked_at_values))
        fitting = TableLearner(
            model, TableRows(every, head.targets(values)), looking, recipe, device
        )
        learnt_from = LearntFrom.of(target)
        return cls(
            fitting=fitting,
            inputs=inputs,
            scaling=scaling,
            learnt_from=learnt_from,
            looked_at=looking,
            looked_at_values=looked_at_values,
            unsayable=unsayable,
        )

    def finished(self) -> FittedTable:
        """The model after its best epoch, its doubts measured on the rows that were looked at; what
        epochs are left come first."""
        fitting = self.fitting
        while not fitting.done:
            fitting.advance()
        model = fitting.finish()
        fit = FitRecord(
            epochs=fitting.epoch,
            best_epoch=fitting.best_epoch,
            best_loss=fitting.best_loss,
            steps=fitting.step,
            samples=fitting.epoch * fitting.rows,
        )
        bare = FittedTable(
            model=model,
            inputs=self.inputs,
            scaling=self.scaling,
            calibration={},
            learnt_from=self.learnt_from,
            fit=fit,
        )
        with torch.no_grad():
            parameters = bare.parameters(self.looked_at.inputs)
            calibration: Calibration = {}
            if isinstance(model.reader, CalibratedReader):
                calibration = model.reader.calibrate(parameters, self.looked_at_values)
        return replace(bare, calibration=calibration)
