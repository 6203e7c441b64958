"""Fit a model to a table, and predict with it. ``train`` and ``numtok.sklearn`` both fit here.

The recipe is that of Decoding-based Regression, Appendix D: AdamW, at most 300 epochs, a tenth of
the train split held back, patience 5. The next epoch is a pure function of the state of a
:class:`TableLearner` and of (seed, epoch), so a fit that was saved and loaded continues as if it
had never stopped. A :class:`FittedTable` is the model with the scaling of its target and the
constants of its inputs.
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
from numtok.models.regressor import Regressor, RegressorSettings
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import settings_of, spec_of
from numtok.seeds import generator, seed_of
from numtok.settings.train import Config
from numtok.stored_json import Natural
from numtok.training.adamw import AdamW, Group
from numtok.training.checkpoint import Checkpoint, learner_tensors, load_learner
from numtok.training.device import torch_threads
from numtok.training.features import Features, Inputs

_SMALL = 2e9  # operations of one pass over a batch
_LOOKED_AT = 1 << 14  # rows of the validation split that go through the model at a time


@dataclass(frozen=True, kw_only=True)
class FittingRecipe:
    """How a model is fitted; each value is one of ``numtok train``, and held to its bounds.

    patience
        Epochs without a better validation loss after which it ends; 0: never before the last.
    validation
        The share of the train split that is held back for it, where no split is there for that.
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
        """Of settings that have these names; ``more`` are others."""
        names = [field.name for field in fields(cls) if field.name not in more]
        return cls(**{name: getattr(settings, name) for name in names}, **more)

    def __post_init__(self) -> None:
        Config(data="", **asdict(self))  # raises UsageError for what is out of bounds there


class TableRows(NamedTuple):
    """``n`` rows as a model is given them."""

    inputs: NDArray[np.float32]  # [n, inputs]
    learnt: NDArray[Any]  # [n, W], as the head learns the target


def held_back(rows: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices to learn from and to look at, at least one of each; two rows are needed.

    >>> [part.tolist() for part in held_back(5, 0.2, seed=0)]
    [[0, 1, 2, 3], [4]]
    """
    order = generator(seed, "held back").permutation(rows)
    count = min(max(1, round(share * rows)), rows - 1)
    return np.sort(order[count:]), np.sort(order[:count])


class Epoch(NamedTuple):
    """Mean losses after an epoch, in the head's units."""

    epoch: int
    train: float
    validation: float


class FittingState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What fitting goes on from, beside its tensors."""

    epoch: Natural
    step: Natural
    best_epoch: Natural
    best_loss: float


class TableLearner:
    """A model being fitted; ``epoch`` counts those that are done, ``step`` their batches."""

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
        """How many are learnt in an epoch."""
        return len(self._train[0])

    @property
    def done(self) -> bool:
        """Whether the last epoch was the last."""
        recipe = self.recipe
        late = recipe.patience and self.epoch - self.best_epoch >= recipe.patience
        return self.epoch >= recipe.epochs or bool(late)

    def advance(self) -> Epoch:
        """Train one epoch; TrainingFailed if the loss is not finite."""
        operations = regressor_flops(self.model, min(self.recipe.batch, self.rows))
        # For a small model, several threads wait for each other longer than they gain. With one
        # thread the result has the same bytes, however many were allowed.
        small = self.device.type == "cpu" and operations < _SMALL
        with torch_threads(1 if small else torch.get_num_threads()):
            return self._advance()

    def _advance(self) -> Epoch:
        self.model.train()
        rows = self.rows
        order = generator(self.recipe.seed, "order", self.epoch).permutation(rows)
        total = torch.zeros((), dtype=widest(self.device), device=self.device)
        for chosen in torch.split(torch.from_numpy(order).to(self.device), self.recipe.batch):
            x_NI, learnt_NW = (part.index_select(0, chosen) for part in self._train)
            losses = self.model.losses(x_NI, learnt_NW)
            self._optimizer.zero_grad()
            losses.mean().backward()  # type: ignore[no-untyped-call]
            self._optimizer.step(self.recipe.learning_rate)
            total += losses.detach().sum()
            self.step += 1
        self.epoch += 1
        made = Epoch(self.epoch, float(total) / rows, self.validation_loss())
        if not (math.isfinite(made.train) and math.isfinite(made.validation)):
            raise TrainingFailed(
                f"the loss is not finite in epoch {self.epoch}; give a smaller --lr (it was "
                f"{self.recipe.learning_rate:g})"
                + ("" if learns_unit_interval(self.model.head) else ", or --normalize affine")
            )
        if made.validation < self.best_loss:
            self.best_loss, self.best_epoch = made.validation, self.epoch
            self._best = copy.deepcopy(self.model.state_dict())
        return made

    @torch.no_grad()
    def validation_loss(self) -> float:
        """The mean loss of the rows that are held back."""
        self.model.eval()
        parts = zip(*(torch.split(part, _LOOKED_AT) for part in self._validation), strict=True)
        total = sum(float(widened(self.model.losses(*part)).sum()) for part in parts)
        return total / len(self._validation[0])

    def finish(self) -> Regressor:
        """The model as it was after the best epoch."""
        self.model.load_state_dict(self._best)
        return self.model.eval()

    def state(self) -> Checkpoint[FittingState]:
        """What the next epoch depends on; when it is done only what the best one left."""
        tensors = {f"best.{name}": one for name, one in self._best.items()}
        if not self.done:
            live = learner_tensors(self.model, self._optimizer)
            tensors |= {name: one.clone() for name, one in live.items()}  # the next step writes
        plain = FittingState(self.epoch, self.step, self.best_epoch, self.best_loss)
        return Checkpoint(tensors, plain)

    def load(self, tensors: Mapping[str, Tensor], plain: FittingState) -> None:
        """The inverse of :meth:`state`."""
        self.epoch, self.step = plain.epoch, plain.step
        self.best_epoch, self.best_loss = plain.best_epoch, plain.best_loss
        best = ((name.partition("."), one) for name, one in tensors.items())
        self._best = {key: one.to(self.device) for (of, _, key), one in best if of == "best"}
        if not self.done:
            load_learner(self.model, self._optimizer, tensors, self.step)


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
            parameters = fitted.parameters(self.looked_at.inputs)
            calibration = model.reader.calibrate(parameters, self.looked_at_values)
        return replace(fitted, calibration=calibration)
