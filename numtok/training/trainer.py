"""Training steps of text models: AdamW, warm-up, cosine decay, and gradient clipping.

A :class:`Trainer` does not read or write files or measure time. Each step is a pure function of its
state and of (seed, step), so a resumed run gives the same result as an uninterrupted one.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from numtok.errors import TrainingFailed, UsageError
from numtok.models.flops import ModelFlops
from numtok.models.inputs import ModelInputs
from numtok.models.model import Losses, Model
from numtok.models.objectives.base import weighted
from numtok.models.precision import widest
from numtok.models.training_batch import TrainingBatch
from numtok.seeds import seed_of
from numtok.stored_json import Natural
from numtok.training.adamw import AdamW, Group
from numtok.training.checkpoint import Checkpoint, learner_tensors, load_learner
from numtok.training.device import seed_generator
from numtok.training.ranks import ALONE, Ranks, part_like, place_model, whole

WHOLE_STEP = 3  # cost of a step in forward passes: the backward pass costs two
_SUMS = ("loss", "token_loss", "value_loss", "gradient_norm")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hyperparameters for training a text model, except the number of steps.

    warmup
        Fraction of the steps during which the learning rate rises from 0 to ``learning_rate``. It
        then falls to ``final_rate`` along a cosine.
    starts
        Steps at which the learning rate schedule starts over, followed by the total number of
        steps. Each interval has its own warm-up and cosine. If it is None, the whole run is one
        interval.
    clip
        Maximum norm of the gradient of all weights together; 0 for no limit.
    """

    learning_rate: float
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    final_rate: float = 0.0
    starts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        # In addition to the bounds that ``settings.train`` declares, which also apply to tables.
        rate, final, decay = self.learning_rate, self.final_rate, self.weight_decay
        for option, value, good, allowed in (
            ("--lr-end", final, final <= rate, f"at most --lr, {rate:g}"),
            ("--weight-decay", decay, decay < 1, "at least 0 and below 1"),
            ("--grad-clip", self.clip, self.clip < math.inf, "finite, or 0 for no limit"),
        ):
            if not good:
                raise UsageError(f"{option} must be {allowed} (got {value})")

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, in a run of ``steps`` steps.

        >>> recipe = Recipe(learning_rate=1.0e-3, warmup=0.1)
        >>> [round(1000 * recipe.rate(step, 100), 3) for step in (0, 9, 55, 99)]
        [0.1, 1.0, 0.5, 0.0]
        """
        starts = self.starts or (0, steps)
        part = min(bisect_right(starts, step), len(starts) - 1)
        first, steps = starts[part - 1], starts[part] - starts[part - 1]
        step, warm = step - first, round(self.warmup * steps)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        done = (step - warm) / max(1, steps - warm)
        above = self.learning_rate - self.final_rate
        return self.final_rate + above * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options for executing a training run. They affect results only through rounding and dropout
    masks.

    accumulate
        Number of parts that a batch is split into. The parts are processed one after the other to
        save memory.
    recompute
        True to save memory by recomputing the hidden states of each block in the backward pass.
    compiled
        True to let PyTorch compile losses and gradients, which makes the first steps take minutes.
    ranks
        Processes that each train on a part of every batch.
    shard
        True to save memory by sharding the weights over the ranks; otherwise they are replicated.
    """

    device: torch.device
    bfloat16: bool = False
    accumulate: int = 1
    recompute: bool = False
    compiled: bool = False
    ranks: Ranks = ALONE
    shard: bool = False


class DeviceBatch(NamedTuple):
    """A training batch that was prepared on the host.

    parts
        Model inputs of this rank's rows, in one or more parts. Each part comes with the weights
        that turn its mean losses into its contribution to the mean losses of the whole batch.
    """

    parts: list[tuple[ModelInputs, "BatchShares"]]
    counts: tuple[int, int, int]  # of the whole batch (Trainer._counts)
    tokens: int  # in the whole batch, without padding
    flops: int  # of all forward passes over the parts
    second_flops: int  # of these, the FLOPs of the objective's second passes


class BatchShares(NamedTuple):
    """The fraction of a batch's predictions that is in one part of the batch.

    There is one fraction for predicted tokens, one for predicted values, and one for the positions
    of the objective's own losses.
    """

    tokens: float
    values: float
    own: float


class TrainerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Plain (non-tensor) values that a trainer resumes from."""

    step: Natural
    tokens: Natural
    flops: Annotated[int, msgspec.Meta(ge=0)]
    second_flops: Annotated[int, msgspec.Meta(ge=0)]
    summed: Natural


class Trainer:
    """Trains a text model step by step. ``step`` is the number of finished steps.

    With several ranks, each rank trains on its own rows of a batch. Losses are divided by the
    counts of the whole batch, so the gradients of all ranks add up to those of a single rank.
    ``flops`` counts the operations of this rank only.
    """

    def __init__(self, model: Model, recipe: Recipe, execution: Execution, *, steps: int) -> None:
        """Place the model on its device; ``steps`` is the length of the learning rate schedule."""
        self.model = model
        self.steps = steps
        if execution.recompute:
            self.model.trunk.recompute = True
        self.recipe = recipe
        self.execution = execution
        self.device = execution.device
        self.ranks = execution.ranks
        self.step = 0
        self.tokens = 0  # trained on, without padding
        self.flops = 0  # of forward passes
        self.second_flops = 0  # of these, second passes
        losses: Callable[[ModelInputs], Losses] = model.losses
        self._figures = model.figures
        if execution.compiled:  # dynamic, or every new batch shape would be compiled
            losses = torch.compile(model.losses, dynamic=True)
        self._operations = ModelFlops(model)  # before its weights may be sharded
        self._placement = place_model(model, losses, self.ranks, self.device, execution.shard)
        self._kept = [*self._kept_rows()]
        self._optimizer = AdamW(self._groups(), betas=(0.9, 0.95))
        self._names = (*_SUMS, *(loss.name for loss in self._figures))
        self._sums = torch.zeros(len(self._names), dtype=widest(self.device), device=self.device)
        self._summed = 0

    def _groups(self) -> Iterator[Group]:
        """Yield parameter groups: matrices decay, except tables with frozen rows, and parameters
        that the objective names have their own learning rate."""
        left = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        kept = {id(table) for table, _ in self._kept}
        own: dict[float, list[nn.Parameter]] = {}
        own_rates = self.model.own_losses.rates() if self.model.own_losses else {}
        for prefix, rate in own_rates.items():
            names = [name for name in left if name.startswith(prefix)]
            times = rate / self.recipe.learning_rate
            own.setdefault(times, []).extend(left.pop(name) for name in names)
        for times, parameters in ((1.0, [*left.values()]), *own.items()):
            for decay, matrices in ((self.recipe.weight_decay, True), (0.0, False)):
                group = [p for p in parameters if (p.dim() >= 2 and id(p) not in kept) is matrices]
                yield Group(group, decay, times)

    def _kept_rows(self) -> Iterator[tuple[nn.Parameter, Tensor]]:
        """Yield tables with frozen rows, with a mask that is 0 for these rows and 1 for others."""
        for name in sorted(self.model.kept):
            table = self.model.get_parameter(name)
            mask_V1 = torch.ones(len(table), 1)
            mask_V1[self.model.first_kept :] = 0
            yield table, part_like(mask_V1, table)

    def prepare(self, example: TrainingBatch) -> DeviceBatch:
        """Prepare a batch for :meth:`learn`. Other threads may call this method ahead of time.

        For a GPU, the inputs are placed in pinned memory, so that copying them does not block a
        step.
        """
        example = self.model.with_number_scale(example)
        totals = self._counts(example)
        parts, flops, second = [], 0, 0
        for part, counts in self._parts(example):
            inputs = self.model.on_host(part)
            operations = self._operations(inputs)
            flops += operations.total
            second += operations.further
            if self.device.type == "cuda":
                inputs = inputs.pinned()
            shares = (count / max(1, total) for count, total in zip(counts, totals, strict=True))
            parts.append((inputs, BatchShares(*shares)))
        return DeviceBatch(parts, totals, int(example.real.sum()), flops, second)

    def _parts(
        self, example: TrainingBatch
    ) -> Iterator[tuple[TrainingBatch, tuple[int, int, int]]]:
        """Yield the parts of this rank's rows, with their counts."""
        accumulate, own, passes = self.execution.accumulate, example, 1
        if self.ranks.count > 1:
            hands = example.dealt(self.ranks.count)
            own = example.of_rows(hands[self.ranks.rank])
            if not self._placement.apart:  # all ranks must run the same number of passes
                passes = min(accumulate, max(map(len, hands)))
        for part in own.parts(accumulate) if len(own.tokens) else ():
            yield part, self._counts(part)
            passes -= 1
        for _ in range(passes):  # every rank joins each pass, if need be with a row of weight 0
            yield example.of_rows(np.arange(1)), (0, 0, 0)

    def _counts(self, example: TrainingBatch) -> tuple[int, int, int]:
        """Return the numbers of predicted tokens, of predicted values, and of the objective's
        positions."""
        values = example.where if self.model.values_per_token else example.number_where
        own = self.model.own_places(example)
        return len(example.where), len(values), 0 if own is None else len(own)

    def advance(self, example: TrainingBatch) -> None:
        """Prepare a batch and train one step on it."""
        self.learn(self.prepare(example))

    def learn(self, prepared: DeviceBatch) -> None:
        """Train one step on a prepared batch, without waiting for the device."""
        if not self.model.training:  # train() visits every module, so call it only when needed
            self.model.train()
        # Dropout uses the global generator, so seed it here: other users of it must not matter.
        own = (self.ranks.rank,) if self.ranks.rank else ()
        seed_generator(self.device, seed_of(self.recipe.seed, "dropout", self.step, *own))
        self._optimizer.zero_grad()
        for losses in self._losses(prepared, self._placement.losses):
            total = self.model.total(losses)
            (total * self._placement.times).backward()  # type: ignore[no-untyped-call]
            self._sums[:3] += torch.stack([total, losses.token, losses.value]).detach()
            if losses.own:
                self._sums[len(_SUMS) :] += torch.stack(losses.own).detach()
        for table, mask_V1 in self._kept:
            if table.grad is not None:
                table.grad.mul_(mask_V1)
        norm = whole(clip_grad_norm_(self.model.parameters(), self.recipe.clip or math.inf))
        self._optimizer.step(self.recipe.rate(self.step, self.steps))
        self._sums[3] += norm
        self._summed += 1
        self.step += 1
        self.tokens += prepared.tokens
        self.flops += prepared.flops
        self.second_flops += prepared.second_flops

    def means(self) -> dict[str, float]:
        """Return the mean losses and the mean gradient norm since the last call.

        The method waits for the device. Raises TrainingFailed if one of the means is not finite.
        """
        sums = (self._all_sums() / max(1, self._summed)).tolist()
        self._sums.zero_()
        self._summed = 0
        if not all(map(math.isfinite, sums)):
            raise TrainingFailed(
                f"the loss is not finite at step {self.step}. Use a smaller --lr (it was "
                f"{self.recipe.learning_rate:g}), a longer --warmup, or a --normalize that keeps "
                "numbers small"
            )
        return dict(zip(self._names, sums, strict=True))

    def _all_sums(self) -> Tensor:
        """Return the sums over all ranks; the gradient norm is the same on each and not summed."""
        if self.ranks.count == 1:
            return self._sums
        sums = self.ranks.total(self._sums)
        sums[_SUMS.index("gradient_norm")] = self._sums[_SUMS.index("gradient_norm")]
        return sums

    def all_flops(self) -> tuple[int, int]:
        """Return the FLOPs of all forward passes on all ranks, and the part of them that is due to
        second passes."""
        flops, second = self.ranks.total(torch.tensor([self.flops, self.second_flops])).tolist()
        return flops, second

    @torch.no_grad()
    def validate(self, examples: Iterable[TrainingBatch]) -> dict[str, float]:
        """Return the mean losses over batches, without training on them.

        ``loss`` is the weighted total, as in training. All losses are NaN if nothing is predicted.
        """
        self.model.eval()
        names = ["token_loss", "value_loss", *(loss.name for loss in self._figures)]
        sums, counts = torch.zeros(2, len(names), dtype=torch.float64)
        with self._placement.inference():
            for example in examples:
                prepared = self.prepare(example)
                tokens, values, own = prepared.counts
                own_counts = (tokens if loss.per_token else own for loss in self._figures)
                weights = torch.tensor([tokens, values, *own_counts], dtype=torch.float64)
                parts = self._losses(prepared, lambda inputs, last: self.model.losses(inputs))
                losses = [torch.stack([part.token, part.value, *part.own]) for part in parts]
                # Only one transfer, so that the device is waited for once.
                totals = [sum(terms) for terms in zip(*torch.stack(losses).tolist(), strict=True)]
                sums += torch.tensor(totals, dtype=torch.float64) * weights
                counts += weights
        sums = self.ranks.total(sums)
        means = dict(zip(names, (sums / counts.clamp(min=1)).tolist(), strict=True))
        total = means["token_loss"] + means["value_loss"]
        if self._figures:
            total += weighted(self._figures, [means[loss.name] for loss in self._figures])
        metrics = {"loss": total} | means
        return metrics if counts.any() else dict.fromkeys(metrics, math.nan)

    @contextmanager
    def inference(self) -> Iterator[Ranks]:
        """Context manager that makes the whole model available for calls without gradients.

        It yields the ranks that can share the work in the block. If the model is sharded, all ranks
        must do the same work, so each rank is given a :class:`Ranks` with only itself.
        """
        with self._placement.inference():
            yield self.ranks if self._placement.apart else ALONE

    def _losses(
        self, prepared: DeviceBatch, losses: Callable[[ModelInputs, bool], Losses]
    ) -> Iterator[Losses]:
        """Yield the losses of each part of a batch, weighted so that they add up to its means."""
        for index, (inputs, share) in enumerate(prepared.parts, 1):
            with self._precision():
                part = losses(inputs.to(self.device), index == len(prepared.parts))
            own = tuple(
                loss * (share.tokens if figure.per_token else share.own)
                for figure, loss in zip(self._figures, part.own, strict=True)
            )
            yield Losses(part.token * share.tokens, part.value * share.values, own)

    def state(self) -> Checkpoint[TrainerState]:
        """Return a checkpoint of everything that the next step depends on.

        All ranks must call this method together.
        """
        tensors = learner_tensors(self.model, self._optimizer, keep=self.ranks.first)
        flops, second_flops = self.all_flops()
        plain = TrainerState(
            step=self.step,
            tokens=self.tokens,
            flops=flops,
            second_flops=second_flops,
            summed=self._summed,
        )
        return Checkpoint(tensors | {"sums": self._all_sums()}, plain)

    def load(self, tensors: Mapping[str, Tensor], plain: TrainerState) -> None:
        """Resume from the contents of a checkpoint that :meth:`state` returned.

        FLOPs and summed losses are totals over all ranks, so only the first rank restores them.
        """
        self.step, self.tokens = plain.step, plain.tokens
        self._summed = plain.summed
        if self.ranks.first:
            self.flops, self.second_flops = plain.flops, plain.second_flops
            self._sums.copy_(tensors["sums"].to(self._sums.dtype))
        load_learner(self.model, self._optimizer, tensors, self.step)

    @contextmanager
    def _precision(self) -> Iterator[None]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.execution.bfloat16):
            yield
