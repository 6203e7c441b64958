"""Fitting a model to a table: AdamW, epoch by epoch, until the validation loss falls no more.

The recipe of Decoding-based Regression, Appendix D: at most 300 epochs, a tenth
of the train split held back, patience 5. A :class:`TableLearner` knows nothing of
files. What comes next is a pure function of its state and of (seed, epoch), so a
state that was saved and loaded goes on as if it had never stopped.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.errors import TrainingFailed
from numtok.models.flops import regressor_flops
from numtok.models.heads.base import learns_unit_interval
from numtok.models.precision import widened, widest
from numtok.models.regressor import Regressor
from numtok.seeds import generator
from numtok.settings.train import Config
from numtok.stored_json import Natural
from numtok.training.adamw import AdamW, Group
from numtok.training.checkpoint import Checkpoint, learner_tensors, load_learner

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
        """One epoch; TrainingFailed where the loss is not finite."""
        with self._few_threads():
            return self._advance()

    @contextmanager
    def _few_threads(self) -> Iterator[None]:
        """One thread for a small model on a CPU: several wait for each other longer than they gain.

        So such a fit ends in the same bytes, whatever number of threads it was allowed.
        """
        threads = torch.get_num_threads()
        operations = regressor_flops(self.model, min(self.recipe.batch, self.rows))
        if self.device.type == "cpu" and operations < _SMALL:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

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
