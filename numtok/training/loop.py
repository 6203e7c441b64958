"""One training run in its draft: the budget, the loop, checkpoints, what is left behind."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_values
from numtok.models.batches import Batch, Batches
from numtok.models.model import Model
from numtok.models.objectives.base import (
    Objective,
    TrainingBatch,
    autoregressive_batch,
    masked_batch,
)
from numtok.seeds import generator
from numtok.store.draft import Draft
from numtok.training.checkpoint import (
    Checkpoint,
    belonging,
    read_checkpoint,
    read_steps,
    write_checkpoint,
    write_steps,
)
from numtok.training.curriculum_sampler import CurriculumSampler
from numtok.training.device import MatmulRate, peak_memory
from numtok.training.exact_match import ExactAnswers
from numtok.training.log import Line
from numtok.training.prefetch import prefetched
from numtok.training.profiler import Cost, traced
from numtok.training.signals import Signals
from numtok.training.trainer import (
    WHOLE_STEP,
    DeviceBatch,
    Execution,
    Recipe,
    Trainer,
    TrainerState,
)

_VALIDATION_ROWS = 4096  # of the validation split at most
_RECORDS, _VALIDATIONS = 200, 20  # how often a run writes its losses down, at most
_STEPS_PER_LOOK = 3  # batches learnt for one looked at, which costs a third: a tenth of the time
_CHECKPOINT_SECONDS = 60.0
_TRACED_STEPS = 5
_WARM_STEPS = 3  # before time is measured: the first steps take memory and choose kernels


class _TrainingState(TrainerState, frozen=True):
    """Of a checkpoint."""

    records: list[Line]
    seconds: float


class Speed(NamedTuple):
    """Of training, the time for validation and checkpoints counted in."""

    tokens_per_second: float
    numbers_per_second: float
    flops_per_second: float  # forward and backward, as Model.flops counts them
    mfu: float  # these as a share of what matrix products reach on the device


class TrainingProgress(NamedTuple):
    """Where training stands, for the progress line."""

    step: int
    steps: int
    loss: float
    speed: Speed
    peak_memory: int  # bytes
    seconds_left: float


Progress = Callable[[TrainingProgress], None]


class SplitExamples:
    """Rows to learn from or to look at, as examples of an objective.

    An example is a pure function of (seed, purpose, step). ``classes`` are the labels that are
    learnt, where labels are, ``curriculum`` says which rows a step learns, where that is not all of
    them in turn.
    """

    def __init__(
        self,
        samples: EncodedSplit,
        codec: Codec,
        objective: Objective,
        batch: int,
        seed: int,
        classes: Sequence[str] = (),
        curriculum: CurriculumSampler | None = None,
    ) -> None:
        self.samples = samples
        self.objective = objective
        self.classes = classes
        self.batches = Batches(samples, learnt_values(samples, codec), batch, classes)
        self._order = curriculum or self.batches.order
        # What can be looked at: of labels, those that are learnt.
        known = samples.class_of(classes) >= 0 if classes else np.ones(len(samples), np.bool_)
        self._known = np.flatnonzero(known)
        self._codec = codec
        self._batch = batch
        self._seed = seed

    def training_batch(self, step: int) -> TrainingBatch:
        """What is learnt in a step."""
        batch = self.batches.of(self._order.at(self._seed, step))
        return self.objective.example(batch, generator(self._seed, "masks", step))

    def row_count(self, steps: int) -> int:
        """How many rows so many steps learn."""
        return self._order.row_count(steps)

    def steps(self, tokens: int) -> int:
        """How many until so many tokens went in: the last batch reaches them or goes past."""
        epochs, left = divmod(tokens, self._going_in(self.samples.lengths))
        steps = epochs * len(self.batches)
        while left > 0:
            left -= self._going_in(self.batches.at(self._seed, steps).lengths)
            steps += 1
        return steps

    def _going_in(self, lengths: NDArray[np.int64]) -> int:
        """Tokens that a trunk reads of rows of such lengths; never none, and one more to begin."""
        return int(np.maximum(lengths + self.objective.causal, 1).sum())

    def queries(self) -> Iterator[TrainingBatch]:
        """The numbers of some rows as evaluation asks for them, to measure errors by.

        The targets; where no row has any, one number of each row with all others in sight, and
        from left to right every number.
        """
        for batch, first in self._some_batches():
            chosen = batch.is_target
            if not len(self.samples.targets):
                chosen = np.ones_like(chosen)
            if self.objective.causal:
                yield autoregressive_batch(batch, chosen)
                continue
            if not len(self.samples.targets):
                order = generator(0, "asked", first).permutation(len(batch.number))
                _, one = np.unique(batch.number_row[order], return_index=True)
                chosen = np.isin(np.arange(len(chosen)), order[one])
            yield masked_batch(batch, batch.number_tokens(chosen))

    def looked_at(self) -> Iterator[TrainingBatch]:
        """The same rows with the same masks each time, whatever the seed of the run."""
        for batch, first in self._some_batches():
            yield self.objective.example(batch, generator(0, "looked at", first))

    @property
    def looks(self) -> int:
        """How many batches :meth:`looked_at` gives."""
        return -(-min(_VALIDATION_ROWS, len(self._known)) // self._batch)

    def answers(self) -> ExactAnswers | None:
        """What a model that writes from left to right is to write; None where nothing is."""
        if not self.objective.causal or self.classes:
            return None
        return ExactAnswers.of(self.samples, self.batches, self._codec, self._batch)

    def _some_batches(self) -> Iterator[tuple[Batch, int]]:
        draws = generator(0, "looked at").permutation(len(self._known))[:_VALIDATION_ROWS]
        rows = self._known[draws]
        rows = rows[np.argsort(self.samples.lengths[rows], kind="stable")]
        for first in range(0, len(rows), self._batch):
            yield self.batches.of(rows[first : first + self._batch]), first


class Training:
    """Everything that one run holds on to.

    ``model(...)`` makes the model as it is before the first step, the same one at each call.
    """

    def __init__(
        self,
        draft: Draft,
        train: SplitExamples,
        validation: SplitExamples | None,
        model: Callable[[], Model],
        recipe: Callable[[int], Recipe],
        *,
        execution: Execution,
        batch_workers: int,
        checkpoint_steps: int | None,
        progress: Progress,
        note: Callable[[str], None],
    ) -> None:
        self.draft = draft
        self.train = train
        self.validation = validation
        self._answers = None if validation is None else validation.answers()
        self.model = model
        self.recipe = recipe
        self.execution = execution
        self.batch_workers = batch_workers
        self.checkpoint_steps = checkpoint_steps
        self.progress = progress
        self.note = note
        self.records: list[Line] = []  # of metrics.jsonl
        self.seconds = 0.0  # of training, earlier runs included
        self.rate = MatmulRate(execution.device, execution.bfloat16)
        self._numbers_a_token = len(train.samples.numbers) / max(1, len(train.samples.tokens))

    def run(self, budget: dict[str, float]) -> Trainer:
        """Train to the end of the budget, from the checkpoint of an earlier run if there is one."""
        steps = read_steps(self.draft)
        if steps is None:
            steps = self._steps(budget)
            write_steps(self.draft, steps)
        trainer = self._trainer(steps)
        if (checkpoint := read_checkpoint(self.draft, _TrainingState)) is not None:
            with belonging(self.draft.path):
                trainer.load(checkpoint.tensors, checkpoint.plain)
            self.records, self.seconds = checkpoint.plain.records, checkpoint.plain.seconds
            self.note(f"goes on at step {trainer.step:,} of {steps:,}")
        if self.execution.bfloat16 and self.execution.device.type == "cpu":
            self._check_precision()
        self._loop(trainer)
        return trainer

    def _check_precision(self) -> None:
        """A CPU without instructions for bfloat16 does it a hundred times slower than float32."""
        slower = MatmulRate(self.execution.device, False).per_second / self.rate.per_second
        if slower > 1.5:
            self.note(
                f"bfloat16 is {slower:,.0f} times slower than float32 on this CPU; "
                "--precision float32 is faster"
            )

    def timing(self, trainer: Trainer) -> dict[str, Any]:
        """What goes into timing.json; speeds are of all runs, memory is of this one, and
        ``second_pass`` is its share in the FLOPs."""
        self.rate.look_again()
        speed = self.speed(trainer.tokens, trainer.flops, self.seconds)
        second = trainer.second_flops / max(1, trainer.flops)
        return {
            "seconds": self.seconds,
            **speed._asdict(),
            "matmul_flops_per_second": self.rate.per_second,
            "peak_memory": peak_memory(self.execution.device),
            "device": self.execution.device.type,
            "threads": torch.get_num_threads(),
        } | ({"second_pass": second} if second else {})

    def speed(self, tokens: int, forward_flops: int, seconds: float) -> Speed:
        """Of so much work in so much time."""
        seconds = max(seconds, 1e-9)
        flops = WHOLE_STEP * forward_flops / seconds
        return Speed(
            tokens / seconds,
            tokens / seconds * self._numbers_a_token,
            flops,
            self.rate.share(flops),
        )

    def profile(self, path: Path) -> list[Cost]:
        """What a step costs, by operations; a trace goes to ``path``.

        The model is thrown away, so that training is the same with and without.
        """
        trainer = self._trainer(1 << 30)
        for step in range(_WARM_STEPS):
            trainer.advance(self.train.training_batch(step))
        steps = range(_WARM_STEPS, _WARM_STEPS + _TRACED_STEPS)
        return traced(
            lambda step: trainer.advance(self.train.training_batch(step)),
            steps,
            self.execution.device,
            path,
        )

    def _trainer(self, steps: int) -> Trainer:
        return Trainer(self.model(), self.recipe(steps), self.execution)

    def _steps(self, budget: dict[str, float]) -> int:
        ((unit, amount),) = budget.items()
        if unit == "steps":
            return int(amount)
        if unit == "tokens":
            return self.train.steps(int(amount))
        return max(1, int(amount * 60 / self._seconds_per_step(amount * 60)))

    def _seconds_per_step(self, budget: float) -> float:
        """Measured on a model that is thrown away, for 5 seconds or a tenth of the budget."""
        limit = min(5.0, 0.1 * budget)
        trainer = self._trainer(1 << 30)
        started = time.monotonic()
        while trainer.step <= _WARM_STEPS or time.monotonic() - started < limit:
            trainer.advance(self.train.training_batch(trainer.step))
            if trainer.step == _WARM_STEPS:
                trainer.means()  # waits for the device
                started = time.monotonic()
        trainer.means()
        return (time.monotonic() - started) / (trainer.step - _WARM_STEPS)

    def _loop(self, trainer: Trainer) -> None:
        steps = trainer.recipe.steps
        record_every, validate_every = max(1, steps // _RECORDS), steps
        if self.validation:
            looks = self.validation.looks
            validate_every = max(1, steps // _VALIDATIONS, _STEPS_PER_LOOK * looks)
        clock = _Clock(self, trainer)
        before, saved = self.seconds, time.monotonic()
        with Signals() as signals:

            def prepared(step: int) -> DeviceBatch:
                return trainer.prepare(self.train.training_batch(step))

            for batch in prefetched(prepared, trainer.step, steps, self.batch_workers):
                trainer.learn(batch)
                done = trainer.step == steps
                if trainer.step % record_every == 0 or done:
                    losses = trainer.means()
                    self._record("train", trainer, losses)
                    self.progress(clock.update(trainer, losses["loss"]))
                    self.rate.look_again()
                if self.validation and (trainer.step % validate_every == 0 or done):
                    self._record("validation", trainer, self._validate(trainer, self.validation))
                self.seconds = before + clock.seconds
                stop = signals.received is not None
                due = time.monotonic() - saved > _CHECKPOINT_SECONDS
                if self.checkpoint_steps:
                    due = trainer.step % self.checkpoint_steps == 0
                if stop or due or done:  # what follows the last step can be cut short, too
                    self._save(trainer)
                    saved = time.monotonic()
                if stop:
                    self.note(
                        f"stopped at step {trainer.step:,} of {steps:,}; the same command goes on"
                    )
                    signals.deliver()

    def _record(self, split: str, trainer: Trainer, figures: dict[str, float]) -> None:
        # JSON has no infinity. What is learnt is always finite; what is only looked at may not be.
        finite = {what: one if math.isfinite(one) else None for what, one in figures.items()}
        self.records.append(
            {"step": trainer.step, "tokens": trainer.tokens, "split": split, **finite}
        )

    def _validate(self, trainer: Trainer, split: SplitExamples) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        counts: dict[str, int] = defaultdict(int)
        for example in split.looked_at():
            many = trainer.counts(example)
            for name, mean in trainer.validate(example).items():
                sums[name] += mean * many[name]
                counts[name] += many[name]
        means = {name: total / max(1, counts[name]) for name, total in sums.items()}
        figures = {"loss": trainer.loss(means)} | means
        if not any(counts.values()):  # nothing was asked, and so nothing is known
            figures = dict.fromkeys(figures, math.nan)
        if self._answers is not None:
            figures |= self._answers.shares(trainer.model)
        return figures

    def _save(self, trainer: Trainer) -> None:
        tensors, state = trainer.state()
        plain = _TrainingState(
            **msgspec.structs.asdict(state), records=self.records, seconds=self.seconds
        )
        write_checkpoint(self.draft, trainer.step, Checkpoint(tensors, plain))


class _Clock:
    """Speeds and the time left of this run, from its own start."""

    def __init__(self, training: Training, trainer: Trainer) -> None:
        self._training = training
        self._step, self._tokens, self._flops = trainer.step, trainer.tokens, trainer.flops
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def update(self, trainer: Trainer, loss: float) -> TrainingProgress:
        seconds, training = self.seconds, self._training
        return TrainingProgress(
            trainer.step,
            trainer.recipe.steps,
            loss,
            training.speed(trainer.tokens - self._tokens, trainer.flops - self._flops, seconds),
            peak_memory(training.execution.device),
            (trainer.recipe.steps - trainer.step) * seconds / (trainer.step - self._step),
        )
