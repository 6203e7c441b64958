"""Fits a model to a table and predicts with it, for ``numtok train`` and ``numtok.sklearn``.

The recipe comes from Decoding-based Regression, Appendix D: AdamW, at most 300 epochs, 10% of the
train split held back for validation, and a patience of 5 epochs. An epoch is a pure function of the
state of a :class:`TableLearner` and of (seed, epoch), so a resumed fit gives the same result as an
uninterrupted one.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.normalizers.base import FittedNormalizer, Moments, Normalizer, fit
from numtok.errors import TrainingFailed, UsageError
from numtok.models.distributions.predictive import Predictive
from numtok.models.flops import regressor_flops
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    TokenHead,
    ValueHead,
    learns_unit_interval,
    tiled,
)
from numtok.models.precision import widened, widest
from numtok.models.regressor import Regressor
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import spec_of
from numtok.seeds import generator, seed_of
from numtok.setting_values import as_python
from numtok.settings.train import Config
from numtok.stored_json import Natural
from numtok.training.adamw import AdamW, Group
from numtok.training.checkpoint import Checkpoint, learner_tensors, load_learner
from numtok.training.device import torch_threads
from numtok.training.features import Features, Inputs

_SMALL = 2e9  # operations of one pass over a batch
_VALIDATION_BATCH = 1 << 14  # validation rows per forward pass


@dataclass(frozen=True, kw_only=True)
class FittingRecipe:
    """Hyperparameters for fitting a table model.

    They have the same names and bounds as the settings of ``numtok train``.

    patience
        Number of epochs without a better validation loss after which fitting stops; 0 to never stop
        early.
    validation
        Fraction of the train split that is held back for validation if the table has no validation
        split.
    """

    epochs: int = 300
    patience: int = 5
    validation: float = 0.1
    batch: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, settings: object, **more: Any) -> "FittingRecipe":
        """Build a recipe from the attributes of ``settings`` that are named like the recipe's
        fields. NumPy numbers become Python's.

        Fields that are given in ``more`` are not read from ``settings``.
        """
        names = [field.name for field in fields(cls) if field.name not in more]
        return cls(**{name: as_python(getattr(settings, name)) for name in names}, **more)

    def __post_init__(self) -> None:
        Config(data="", **asdict(self))  # raises UsageError for values out of bounds


class TableRows(NamedTuple):
    """Network inputs and targets of ``n`` table rows."""

    inputs: NDArray[np.float32]  # [n, inputs]
    targets: NDArray[Any]  # [n, W], as the head encodes the target


def held_back(rows: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide row indices at random into training rows and validation rows.

    Both results are int64[k] in ascending order, with at least one row each; at least two rows are
    needed. ``share`` is the fraction of validation rows.

    >>> [part.tolist() for part in held_back(5, 0.2, seed=0)]
    [[0, 1, 2, 3], [4]]
    """
    order = generator(seed, "held back").permutation(rows)
    count = min(max(1, round(share * rows)), rows - 1)
    return np.sort(order[count:]), np.sort(order[:count])


class Epoch(NamedTuple):
    """Mean losses of one epoch on the training and the validation rows, in units of the head's
    loss."""

    epoch: int
    train: float
    validation: float


class FittingState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plain (non-tensor) values that fitting resumes from."""

    epoch: Natural
    step: Natural
    best_epoch: Natural
    best_loss: float


class TableLearner:
    """Trains a table model epoch by epoch and keeps the weights of the best epoch.

    ``epoch`` is the number of finished epochs, and ``step`` is the number of batches in them.
    """

    def __init__(
        self,
        model: Regressor,
        train: TableRows,
        validation: TableRows,
        recipe: FittingRecipe,
        device: torch.device,
    ) -> None:
        self.model = model.to(device)
        self.recipe = recipe
        self.device = device
        self._train = [torch.from_numpy(part).to(device) for part in train]
        self._validation = [torch.from_numpy(part).to(device) for part in validation]
        self.epoch = 0
        self.step = 0
        self.best_epoch = 0
        self.best_loss = math.inf
        self._best = copy.deepcopy(model.state_dict())
        self._optimizer = AdamW([Group([*model.parameters()], recipe.weight_decay)])

    @property
    def rows(self) -> int:
        """Number of training rows per epoch."""
        return len(self._train[0])

    @property
    def done(self) -> bool:
        """True if all epochs are done, or if the patience has run out."""
        recipe = self.recipe
        late = recipe.patience and self.epoch - self.best_epoch >= recipe.patience
        return self.epoch >= recipe.epochs or bool(late)

    def advance(self) -> Epoch:
        """Train for one epoch and return its losses.

        Raises TrainingFailed if a loss is not finite.
        """
        operations = regressor_flops(self.model, min(self.recipe.batch, self.rows))
        # For a small model, threads wait for each other longer than they gain. A single thread also
        # gives the same bytes, however many threads are allowed.
        small = self.device.type == "cpu" and operations < _SMALL
        with torch_threads(1 if small else torch.get_num_threads()):
            return self._advance()

    def _advance(self) -> Epoch:
        self.model.train()
        rows = self.rows
        order = generator(self.recipe.seed, "order", self.epoch).permutation(rows)
        total = torch.zeros((), dtype=widest(self.device), device=self.device)
        for chosen in torch.split(torch.from_numpy(order).to(self.device), self.recipe.batch):
            x_NI, target_NW = (part.index_select(0, chosen) for part in self._train)
            losses = self.model.losses(x_NI, target_NW)
            self._optimizer.zero_grad()
            losses.mean().backward()  # type: ignore[no-untyped-call]
            self._optimizer.step(self.recipe.learning_rate)
            total += losses.detach().sum()
            self.step += 1
        self.epoch += 1
        epoch = Epoch(self.epoch, float(total) / rows, self.validation_loss())
        if not (math.isfinite(epoch.train) and math.isfinite(epoch.validation)):
            raise TrainingFailed(
                f"the loss is not finite in epoch {self.epoch}. Use a smaller --lr (it was "
                f"{self.recipe.learning_rate:g})"
                + ("" if learns_unit_interval(self.model.head) else ", or --normalize affine")
            )
        if epoch.validation < self.best_loss:
            self.best_loss, self.best_epoch = epoch.validation, self.epoch
            self._best = copy.deepcopy(self.model.state_dict())
        return epoch

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Return the mean loss over the validation rows."""
        self.model.eval()
        parts = zip(
            *(torch.split(part, _VALIDATION_BATCH) for part in self._validation), strict=True
        )
        total = sum(float(widened(self.model.losses(*part)).sum()) for part in parts)
        return total / len(self._validation[0])

    def finish(self) -> Regressor:
        """Restore the weights of the best epoch, and return the model in evaluation mode."""
        self.model.load_state_dict(self._best)
        return self.model.eval()

    def state(self) -> Checkpoint[FittingState]:
        """Return a checkpoint of everything that the next epoch depends on.

        When fitting is done, it contains only the best weights.
        """
        tensors = {f"best.{name}": weight for name, weight in self._best.items()}
        if not self.done:
            live = learner_tensors(self.model, self._optimizer)
            # Cloned, because the next step writes to them.
            tensors |= {name: tensor.clone() for name, tensor in live.items()}
        plain = FittingState(self.epoch, self.step, self.best_epoch, self.best_loss)
        return Checkpoint(tensors, plain)

    def load(self, tensors: Mapping[str, Tensor], plain: FittingState) -> None:
        """Resume from the contents of a checkpoint that :meth:`state` returned."""
        self.epoch, self.step = plain.epoch, plain.step
        self.best_epoch, self.best_loss = plain.best_epoch, plain.best_loss
        best = {name.removeprefix("best."): name for name in tensors if name.startswith("best.")}
        self._best = {key: tensors[name].to(self.device) for key, name in best.items()}
        if not self.done:
            load_learner(self.model, self._optimizer, tensors, self.step)


_ROUNDING = 16  # spacings of float64: closer values are the same number after rounding
_ROUNDED = 1e-9  # tolerance around the unit interval
_AT_ONCE = 1 << 14  # rows per forward pass


def table_head(spec: str) -> ValueHead:
    """Build the head with the given spec.

    Raises UsageError if the head only applies to text models.
    """
    head = HEADS.build(spec)
    if isinstance(head, ValueHead) and not isinstance(head, TokenHead):
        return head
    raise UsageError(
        f"--head {spec} only applies to text models, because it predicts tokens. For a table, use "
        "a head of values, such as pointwise, riemann:256, mdn:5 or decoder:ud"
    )


class LearntFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Statistics of the train split of a table: the number of rows, and the distribution of the
    targets.

    low, high, mean
        Smallest, largest and mean target.
    resolution
        Smallest gap between different targets, ignoring rounding errors (such as between 0.3 and
        0.1 + 0.2); 0 if all targets are equal.
    """

    rows: Natural
    low: float
    high: float
    mean: float
    resolution: float

    @classmethod
    def of(cls, target: NDArray[np.float64]) -> "LearntFrom":
        """Compute the statistics of targets float64[n]; there must be at least one."""
        different = np.unique(target)
        gaps = np.diff(different)
        gaps = gaps[gaps > _ROUNDING * np.spacing(np.abs(different[1:]))]
        low, high, mean = (float(statistic(target)) for statistic in (np.min, np.max, np.mean))
        return cls(
            rows=len(target),
            low=low,
            high=high,
            mean=mean,
            resolution=float(gaps.min()) if len(gaps) else 0.0,
        )

    @property
    def log_range(self) -> float:
        """Natural logarithm of the width of the target range; 0 if all targets are equal."""
        return math.log(self.high - self.low) if self.low < self.high else 0.0

    def outside(self, target: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[n]: True for targets (float64[n]) outside the range of the train split."""
        return (target < self.low) | (target > self.high)


class FitRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Record of fitting a table model.

    epochs, steps, samples
        Number of epochs, batches and rows trained on. A row counts once per epoch.
    best_epoch, best_loss
        Epoch with the lowest validation loss, and that loss.
    """

    epochs: Natural
    best_epoch: Natural
    best_loss: float
    steps: Natural
    samples: Natural


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTable:
    """A fitted table model, with the constants of its inputs and the normalization of its target.

    scaling
        Normalization of the target.
    calibration
        Constants of the head's predicted distribution, if it needs any.
    learnt_from
        Statistics of the train split.
    """

    model: Regressor
    inputs: Inputs
    scaling: FittedNormalizer
    calibration: Calibration
    learnt_from: LearntFrom
    fit: FitRecord

    def predictive(self, columns: Features) -> Predictive:
        """Return the predicted distribution of the target for each row, in raw units."""
        parameters = self.parameters(self.inputs.of(columns))
        return self.model.reader.predictive(parameters, self.calibration, self.scaling)

    @torch.no_grad()
    def parameters(self, inputs: NDArray[np.float32]) -> Tensor:
        """Return the parameters [n, P] of the predicted distributions, given network inputs [n,
        inputs].

        On a CPU, the result for a row does not depend on the other rows.
        """
        device = next(self.model.parameters()).device
        chunks = torch.split(torch.from_numpy(inputs), _AT_ONCE)
        return torch.cat([self.model(tiled(part).to(device))[: len(part)] for part in chunks])


@dataclass(frozen=True, eq=False, kw_only=True)
class Preparation:
    """A table model before its first epoch, with its training and validation data."""

    fitting: TableLearner
    inputs: Inputs
    scaling: FittedNormalizer
    learnt_from: LearntFrom
    validation: TableRows
    validation_values: NDArray[np.float64]  # [n], normalized
    unsayable: int  # number of targets that the head cannot represent

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
        """Prepare a model that predicts a target, float64[n], from the feature ``columns`` of n
        rows (at least two).

        All targets must be finite. If ``validation`` is None, a fraction of the rows is held back
        for validation. The constants of the inputs and of the normalization are still fitted on all
        rows. Raises UsageError if the head cannot predict numbers normalized by ``normalizer``.
        """
        inputs = Inputs.fit(columns)
        scaling = fit(normalizer, Moments.of(target))
        if head.exact and not scaling.normalizer.identity:
            raise UsageError(
                f"--head {spec_of(head)} cannot be combined with --normalize "
                f"{spec_of(normalizer)}, because it predicts raw numbers. Use --normalize none"
            )
        values = scaling.forward(target)
        beyond = int(((values < -_ROUNDED) | (values > 1 + _ROUNDED)).sum())
        if learns_unit_interval(head) and beyond:
            raise UsageError(
                f"--normalize {spec_of(normalizer)} maps {beyond:,} of {len(values):,} targets "
                f"outside [0, 1], the range of --head {spec_of(head)}. Use --normalize unit"
            )
        unsayable = int((~head.representable(values)).sum())
        x = inputs.of(columns)
        if validation is None:
            trained, held = held_back(len(target), recipe.validation, recipe.seed)
            validation_x, validation_values = x[held], values[held]
            x, values = x[trained], values[trained]
        else:
            validation_x = inputs.of(validation[0])
            validation_values = scaling.forward(validation[1])
        torch.manual_seed(seed_of(recipe.seed, "init"))
        model = Regressor(inputs.width, trunk, head)
        validation_rows = TableRows(validation_x, head.targets(validation_values))
        fitting = TableLearner(
            model, TableRows(x, head.targets(values)), validation_rows, recipe, device
        )
        learnt_from = LearntFrom.of(target)
        return cls(
            fitting=fitting,
            inputs=inputs,
            scaling=scaling,
            learnt_from=learnt_from,
            validation=validation_rows,
            validation_values=validation_values,
            unsayable=unsayable,
        )

    def finished(self) -> FittedTable:
        """Train the remaining epochs, and return the best model, calibrated on the validation
        rows."""
        fitting = self.fitting
        while not fitting.done:
            fitting.advance()
        model = fitting.finish()
        fitted = FittedTable(
            model=model,
            inputs=self.inputs,
            scaling=self.scaling,
            calibration={},
            learnt_from=self.learnt_from,
            fit=FitRecord(
                epochs=fitting.epoch,
                best_epoch=fitting.best_epoch,
                best_loss=fitting.best_loss,
                steps=fitting.step,
                samples=fitting.epoch * fitting.rows,
            ),
        )
        if not isinstance(model.reader, CalibratedReader):
            return fitted
        with torch.no_grad():
            parameters = fitted.parameters(self.validation.inputs)
            calibration = model.reader.calibrate(parameters, self.validation_values)
        return replace(fitted, calibration=calibration)
