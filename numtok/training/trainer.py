"""The steps of training: AdamW, warm-up and a cosine to zero, gradients clipped.

A :class:`Trainer` knows its step and nothing of files or time. What comes next
is a pure function of its state and of (seed, step), so a state that was saved
and loaded goes on exactly as if it had never stopped.
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
from numtok.training.ranks import ALONE, Ranks, part_like, place, whole

WHOLE_STEP = 3  # forward passes that a step amounts to: the backward pass is two
_SUMS = ("loss", "token_loss", "value_loss", "gradient_norm")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained, but for the number of steps.

    warmup
        Fraction of the steps in which the rate rises from 0 to ``learning_rate``; after it the rate
        falls to ``final_rate`` along a cosine.
    starts
        The steps at which the rate starts over, and the number of steps at the end: each interval
        has a warm-up and a cosine of its own. None: the whole run is one interval.
    clip
        The largest norm of the whole gradient; 0 for no limit.
    """

    learning_rate: float
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    final_rate: float = 0.0
    starts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        # Beside the bounds that ``settings.train`` declares, which hold for tables too.
        rate, final, decay = self.learning_rate, self.final_rate, self.weight_decay
        for option, value, good, allowed in (
            ("--lr-end", final, final <= rate, f"from 0 to --lr, {rate:g}"),
            ("--weight-decay", decay, decay < 1, "0 or more, below 1"),
            ("--grad-clip", self.clip, self.clip < math.inf, "0 (no limit) or more"),
        ):
            if not good:
                raise UsageError(f"{option} {value} is not possible; it is {allowed}")

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, of a run of ``steps``.

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
    """How steps are worked out: what is learnt is the same but for rounding.

    accumulate
        In how many parts a batch is learnt, one after the other, for less memory. (Dropout takes
        other states.)
    recompute
        Whether a block's states are worked out again for its gradient, for less memory.
    compiled
        Whether losses and gradients run as compiled by PyTorch; the first steps take minutes.
    batch_workers
        Threads that prepare batches ahead.
    checkpoint_steps
        After how many steps each a checkpoint is written; None: after a minute each.
    ranks
        The processes that learn a part of each batch.
    shard
        Whether each of them has a part of every weight, for less memory; else a copy of all.
    """

    device: torch.device
    bfloat16: bool = False
    accumulate: int = 1
    recompute: bool = False
    compiled: bool = False
    batch_workers: int = 0
    checkpoint_steps: int | None = None
    ranks: Ranks = ALONE
    shard: bool = False


class DeviceBatch(NamedTuple):
    """A batch as a step learns it, on the host.

    ``parts``: what the model is given, and the shares of its means in those of the batch. Of
    several ranks these are the rank's own rows.
    """

    parts: list[tuple[ModelInputs, "BatchShares"]]
    counts: tuple[int, int, int]  # as in _counts, of the batch
    tokens: int  # real ones, of the batch
    flops: int  # of a forward pass over the parts, and of those that the objective has besides
    second_flops: int  # of these those of the latter


class BatchShares(NamedTuple):
    """What part of a batch's tokens, values and places of the objective some of its rows have."""

    tokens: float
    values: float
    own: float


class TrainerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a trainer goes on from, beside its tensors."""

    step: Natural
    tokens: Natural
    flops: Annotated[int, msgspec.Meta(ge=0)]
    second_flops: Annotated[int, msgspec.Meta(ge=0)]
    summed: Natural


class Trainer:
    """A model and its optimizer at some step; ``step`` counts those that are done.

    Of several ranks each learns its own rows of a batch; losses are divided by what all of the
    batch has, so that gradients add up to those of one rank. ``flops`` are then this rank's.
    """

    def __init__(self, model: Model, recipe: Recipe, execution: Execution, *, steps: int) -> None:
        """``steps`` is the length of the run, over which the learning rate falls."""
        self.model = model
        self.steps = steps
        if execution.recompute:
            self.model.trunk.recompute = True
        self.recipe = recipe
        self.execution = execution
        self.device = execution.device
        self.ranks = execution.ranks
        self.step = 0
        self.tokens = 0  # real ones that went in
        self.flops = 0  # of forward passes
        self.second_flops = 0  # of these those of second ones
        losses: Callable[[ModelInputs], Losses] = model.losses
        self._figures = model.figures
        if execution.compiled:  # for any number of rows and tokens, or each would be compiled anew
            losses = torch.compile(model.losses, dynamic=True)
        self._operations = ModelFlops(model)  # before its weights may lie in shards
        self._placement = place(model, losses, self.ranks, self.device, execution.shard)
        self._kept = [*self._kept_rows()]
        self._optimizer = AdamW(self._groups(), betas=(0.9, 0.95))
        self._told = (*_SUMS, *(one.name for one in self._figures))
        self._sums = torch.zeros(len(self._told), dtype=widest(self.device), device=self.device)
        self._summed = 0

    def _groups(self) -> Iterator[Group]:
        """What the optimizer is given: matrices decay, and what the objective names has a rate of
        its own. What is kept as it is does neither."""
        usual, own = self.recipe.learning_rate, dict[float, list[nn.Parameter]]()
        left = {name: one for name, one in self.model.named_parameters() if one.requires_grad}
        kept = {id(one) for one, _ in self._kept}
        own_rates = self.model.own_losses.rates() if self.model.own_losses else {}
        for first, rate in own_rates.items():
            names = [name for name in left if name.startswith(first)]
            own.setdefault(rate / usual, []).extend(left.pop(name) for name in names)
        for times, some in ((1.0, [*left.values()]), *own.items()):
            for decay, matrices in ((self.recipe.weight_decay, True), (0.0, False)):
                alike = [p for p in some if (p.dim() >= 2 and id(p) not in kept) is matrices]
                yield Group(alike, decay, times)

    def _kept_rows(self) -> Iterator[tuple[nn.Parameter, Tensor]]:
        """The tables of which some rows stay as they are, and 0 for these rows, 1 for others."""
        for name in sorted(self.model.kept):
            table = self.model.get_parameter(name)
            learnt_V1 = torch.ones(len(table), 1)
            learnt_V1[self.model.first_kept :] = 0
            yield table, part_like(learnt_V1, table)

    def prepare(self, example: TrainingBatch) -> DeviceBatch:
        """What :meth:`learn` takes; may be called by other threads ahead of time.

        For a GPU it is put into pinned memory, so that a step need not wait until it is copied.
        """
        example = self.model.with_number_scale(example)
        every = self._counts(example)
        parts, flops, second = [], 0, 0
        for part, counts in self._parts(example):
            given = self.model.on_host(part)
            operations = self._operations(given)
            flops += operations.total
            second += operations.further
            if self.device.type == "cuda":
                given = given.pinned()
            shares = (own / max(1, of) for own, of in zip(counts, every, strict=True))
            parts.append((given, BatchShares(*shares)))
        return DeviceBatch(parts, every, int(example.real.sum()), flops, second)

    def _parts(
        self, example: TrainingBatch
    ) -> Iterator[tuple[TrainingBatch, tuple[int, int, int]]]:
        """What is learnt one after the other, with its counts."""
        accumulate, mine, passes = self.execution.accumulate, example, 1
        if self.ranks.count > 1:
            hands = example.dealt(self.ranks.count)
            mine = example.of_rows(hands[self.ranks.rank])
            if not self._placement.apart:  # each pass is one of all ranks
                passes = min(accumulate, max(map(len, hands)))
        for part in mine.parts(accumulate) if len(mine.tokens) else ():
            yield part, self._counts(part)
            passes -= 1
        for _ in range(passes):  # a rank takes part in each step: it learns a row with no weight
            yield example.of_rows(np.arange(1)), (0, 0, 0)

    def _counts(self, example: TrainingBatch) -> tuple[int, int, int]:
        """Tokens, values (numbers, or tokens) and places of the objective."""
        values = example.where if self.model.values_per_token else example.number_where
        own = self.model.own_places(example)
        return len(example.where), len(values), 0 if own is None else len(own)

    def advance(self, example: TrainingBatch) -> None:
        """One step with a batch that is on the host."""
        self.learn(self.prepare(example))

    def learn(self, prepared: DeviceBatch) -> None:
        """One step; looks at no result, so that a GPU need not be waited for."""
        if not self.model.training:  # or each module is told again, which takes a moment each step
            self.model.train()
        # Dropout draws from the global generator; other users of it must not matter.
        own = (self.ranks.rank,) if self.ranks.rank else ()
        seed_generator(self.device, seed_of(self.recipe.seed, "dropout", self.step, *own))
        self._optimizer.zero_grad()
        for losses in self._losses(prepared, self._placement.losses):
            total = self.model.total(losses)
            (total * self._placement.times).backward()  # type: ignore[no-untyped-call]
            self._sums[:3] += torch.stack([total, losses.token, losses.value]).detach()
            if losses.own:
                self._sums[len(_SUMS) :] += torch.stack(losses.own).detach()
        for table, learnt_V1 in self._kept:
            if table.grad is not None:
                table.grad.mul_(learnt_V1)
        norm = whole(clip_grad_norm_(self.model.parameters(), self.recipe.clip or math.inf))
        self._optimizer.step(self.recipe.rate(self.step, self.steps))
        self._sums[3] += norm
        self._summed += 1
        self.step += 1
        self.tokens += prepared.tokens
        self.flops += prepared.flops
        self.second_flops += prepared.second_flops

    def means(self) -> dict[str, float]:
        """Mean losses and gradient norm since the last call; the device is waited for.

        Raises TrainingFailed where one is not finite.
        """
        sums = (self._all_sums() / max(1, self._summed)).tolist()
        self._sums.zero_()
        self._summed = 0
        if not all(map(math.isfinite, sums)):
            raise TrainingFailed(
                f"the loss is not finite at step {self.step}; give a smaller --lr "
                f"(it was {self.recipe.learning_rate:g}), a longer --warmup, or a --normalize that "
                "keeps numbers small"
            )
        return dict(zip(self._told, sums, strict=True))

    def _all_sums(self) -> Tensor:
        """Of all ranks. The norm is of the whole gradient, which each of them has."""
        if self.ranks.count == 1:
            return self._sums
        sums = self.ranks.total(self._sums)
        sums[_SUMS.index("gradient_norm")] = self._sums[_SUMS.index("gradient_norm")]
        return sums

    def all_flops(self) -> tuple[int, int]:
        """``flops`` and ``second_flops`` of all ranks."""
        flops, second = self.ranks.total(torch.tensor([self.flops, self.second_flops])).tolist()
        return flops, second

    @torch.no_grad()
    def validate(self, examples: Iterable[TrainingBatch]) -> dict[str, float]:
        """The mean losses of batches that are not learnt, and ``loss``, what would be learnt of
        them; NaN where nothing is predicted."""
        self.model.eval()
        names = ["token_loss", "value_loss", *(one.name for one in self._figures)]
        sums, counts = torch.zeros(2, len(names), dtype=torch.float64)  # of what has losses
        with self._placement.looking():
            for example in examples:
                prepared = self.prepare(example)
                tokens, values, own = prepared.counts
                own_counts = (tokens if one.per_token else own for one in self._figures)
                many = torch.tensor([tokens, values, *own_counts], dtype=torch.float64)
                parts = self._losses(prepared, lambda given, last: self.model.losses(given))
                losses = [torch.stack([one.token, one.value, *one.own]) for one in parts]
                # The device is waited for once.
                of_batch = [sum(of) for of in zip(*torch.stack(losses).tolist(), strict=True)]
                sums += torch.tensor(of_batch, dtype=torch.float64) * many
                counts += many
        sums = self.ranks.total(sums)
        means = dict(zip(names, (sums / counts.clamp(min=1)).tolist(), strict=True))
        total = means["token_loss"] + means["value_loss"]
        if self._figures:
            total += weighted(self._figures, [means[one.name] for one in self._figures])
        figures = {"loss": total} | means
        return figures if counts.any() else dict.fromkeys(figures, math.nan)

    @contextmanager
    def looking(self) -> Iterator[Ranks]:
        """Within the block the model may be called in any way, by all of the ranks that it gives:
        in turn, or, where each has but a part of the weights, every one as if it were alone."""
        with self._placement.looking():
            yield self.ranks if self._placement.apart else ALONE

    def _losses(
        self, prepared: DeviceBatch, losses: Callable[[ModelInputs, bool], Losses]
    ) -> Iterator[Losses]:
        """Of each part of a batch, so that they add up to the means over all of it."""
        for index, (given, share) in enumerate(prepared.parts, 1):
            with self._precision():
                found = losses(given.to(self.device), index == len(prepared.parts))
            own = tuple(
                loss * (share.tokens if figure.per_token else share.own)
                for figure, loss in zip(self._figures, found.own, strict=True)
            )
            yield Losses(found.token * share.tokens, found.value * share.values, own)

    def state(self) -> Checkpoint[TrainerState]:
        """Everything that the next step depends on."""
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
        """The inverse of :meth:`state`; what is counted goes on with the first rank."""
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
