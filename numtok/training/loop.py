"""The training loop of text models: budget, validation, log, speed, and traces of steps."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

from numtok import files
from numtok.models.settings import ModelSettings
from numtok.training.checkpoint import checking_checkpoint, read_steps, write_steps
from numtok.training.device import MatmulRate, peak_memory, wait
from numtok.training.examples import SplitExamples
from numtok.training.log import Line, Watch, event_file
from numtok.training.resolved_texts import ResolvedTexts
from numtok.training.run import TrainingRun
from numtok.training.trainer import WHOLE_STEP, DeviceBatch, Trainer, TrainerState

T = TypeVar("T")
ENDLESS = 1 << 30  # steps of a run that only measures speed
_RECORDS, _VALIDATIONS = 200, 20  # per run, at most
# Training batches per validation batch. That costs a third of a step, so validation takes a tenth
# of the time.
_STEPS_PER_VALIDATION_BATCH = 3
_TRACED_STEPS = 5
_WARM_STEPS = 3  # not timed, because the first steps allocate memory and choose kernels
_COSTLIEST = 15  # operations in the result of :func:`traced`


class Cost(NamedTuple):
    """Average cost per training step of one kind of operation, excluding the operations that it
    calls.

    ``share`` is the operation's fraction of the total time, and ``calls`` is the number of calls
    per step.
    """

    operation: str
    seconds: float  # of device time
    share: float
    calls: float


def traced(
    step: Callable[[int], object], steps: range, device: torch.device, path: Path
) -> list[Cost]:
    """Call ``step`` for each index in ``steps``, and return the costliest operations.

    A Chrome trace of the calls is written to ``path``.
    """
    activities, time = [ProfilerActivity.CPU], "self_cpu_time_total"
    if device.type == "cuda":
        activities, time = [*activities, ProfilerActivity.CUDA], "self_device_time_total"
    with profile(activities=activities) as profiler:
        for index in steps:
            step(index)
        wait(device)
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        files.write_atomic(path, trace.read_bytes())
    events = sorted(profiler.key_averages(), key=lambda event: -getattr(event, time))
    whole = sum(getattr(event, time) for event in events)
    return [
        Cost(
            event.key,
            getattr(event, time) / len(steps) / 1e6,  # it counts in microseconds
            getattr(event, time) / max(whole, 1e-9),
            event.count / len(steps),
        )
        for event in events[:_COSTLIEST]
    ]


class Speed(NamedTuple):
    """Average training speed; the time includes validation and checkpoints."""

    tokens_per_second: float
    numbers_per_second: float
    flops_per_second: float  # forward and backward, as Model.flops counts them
    mfu: float  # flops_per_second as a fraction of the device's matrix multiplication speed


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The state of training, for display in the progress line."""

    step: int
    steps: int
    loss: float
    speed: Speed
    peak_memory: int  # bytes
    seconds_left: float


Progress = Callable[[TrainingProgress], None]


@dataclass(eq=False, kw_only=True)
class Training:
    """Trains a text model, validating and logging along the way.

    resolved
        Options of the run, with the model's parts (head, embedder, ...) built.
    settings
        Settings of the model.
    run
        Checkpoints, signals, log and timing of the run.
    progress
        Function that is called with the progress whenever training losses are logged.
    """

    resolved: ResolvedTexts
    settings: ModelSettings
    run: TrainingRun[TrainerState]
    train: SplitExamples
    validation: SplitExamples | None
    progress: Progress

    @cached_property
    def numbers_per_token(self) -> float:
        """Average number of numbers per token in the training data."""
        samples = self.train.samples
        return len(samples.numbers) / max(1, len(samples.tokens))

    def learn(self) -> Trainer:
        """Train until the budget is used up, and return the trainer.

        If there is a checkpoint, training resumes from it.
        """
        run, execution = self.run, self.resolved.execution
        steps = read_steps(run.draft)
        if steps is None:
            steps = self._steps(self.resolved.config.budget)
            if execution.ranks.first:
                write_steps(run.draft, steps)
        trainer = new_trainer(self.resolved, self.settings, steps)
        if (checkpoint := run.checkpoint()) is not None:
            with checking_checkpoint(run.draft.path):
                trainer.load(checkpoint.tensors, checkpoint.plain)
            run.note(f"resumes at step {trainer.step:,} of {steps:,}")
        if execution.bfloat16 and execution.device.type == "cpu":
            self._check_precision()
        log = self.resolved.config.log if execution.ranks.first else None
        with event_file(log, run.draft, trainer.step) as watch:
            self._loop(trainer, watch)
        return trainer

    def _check_precision(self) -> None:
        """Note if bfloat16 is slower than float32, as on a CPU that emulates it a hundred times
        slower."""
        device = self.resolved.execution.device
        slower = MatmulRate(device, False).per_second / self.run.rate.per_second
        if slower > 1.5:
            self.run.note(
                f"bfloat16 is {slower:,.0f} times slower than float32 on this CPU. Use "
                "--precision float32"
            )

    def timing(self, trainer: Trainer) -> dict[str, Any]:
        """Return the contents of ``timing.json``.

        If the objective requires a second forward pass, ``second_pass`` is the fraction of the
        FLOPs that this pass takes.
        """
        tokens, (flops, of_second) = trainer.tokens, trainer.all_flops()
        speeds = {"tokens": tokens, "numbers": tokens * self.numbers_per_token}
        second = of_second / max(1, flops)
        timing = self.run.timing(WHOLE_STEP * flops, speeds)
        return timing | ({"second_pass": second} if second else {})

    def profile(self, path: Path) -> list[Cost]:
        """Write a Chrome trace of a few training steps to ``path``, and return the costliest
        operations.

        The traced model is discarded, so profiling does not affect the model that is trained.
        """
        trainer = new_trainer(self.resolved, self.settings, ENDLESS)
        for step in range(_WARM_STEPS):
            trainer.advance(self.train.training_batch(step))
        steps = range(_WARM_STEPS, _WARM_STEPS + _TRACED_STEPS)
        return traced(
            lambda step: trainer.advance(self.train.training_batch(step)),
            steps,
            self.resolved.execution.device,
            path,
        )

    def _steps(self, budget: dict[str, float]) -> int:
        ((unit, amount),) = budget.items()
        if unit == "steps":
            return int(amount)
        if unit == "tokens":
            return self.train.steps(int(amount))
        # Minutes: time steps on a model that is discarded, for a tenth of the budget.
        trainer = new_trainer(self.resolved, self.settings, ENDLESS)
        seconds = 60 * amount
        limit = min(5.0, 0.1 * seconds)
        pace = seconds_per_step(trainer, self.train, limit)
        return max(1, int(seconds / pace))

    def _loop(self, trainer: Trainer, watch: Watch) -> None:
        steps = trainer.steps
        record_every, validate_every = max(1, steps // _RECORDS), steps
        if self.validation:
            batches = self.validation.validation_batch_count
            validate_every = max(1, steps // _VALIDATIONS, _STEPS_PER_VALIDATION_BATCH * batches)
        clock, workers = _Clock(self, trainer), self.resolved.config.batch_workers
        answers = self.validation.answers() if self.validation else None
        every = self.resolved.config.checkpoint_steps

        def prepared(step: int) -> DeviceBatch:
            return trainer.prepare(self.train.training_batch(step))

        with self.run.running(trainer.state) as after:
            for batch in prefetched(prepared, trainer.step, steps, workers):
                trainer.learn(batch)
                done = trainer.step == steps
                if trainer.step % record_every == 0 or done:
                    losses = trainer.means()
                    watch(self._record("train", trainer, losses))
                    self.progress(clock.update(losses["loss"]))
                    self.run.rate.remeasure()
                if self.validation and (trainer.step % validate_every == 0 or done):
                    metrics = trainer.validate(self.validation.validation_batches())
                    if answers is not None:
                        with trainer.inference() as ranks:
                            metrics |= answers.shares(trainer.model, ranks)
                    watch(self._record("validation", trainer, metrics))
                # Always save after the last step, because the work after it can be interrupted.
                due = None if every is None else trainer.step % every == 0
                after(trainer.step, done or due, f"step {trainer.step:,} of {steps:,}")

    def _record(self, split: str, trainer: Trainer, metrics: dict[str, float]) -> Line:
        """Add a line with these metrics to the log, and return it."""
        # JSON has no infinity. Training losses are always finite; validation losses may not be.
        finite = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        line: Line = {"step": trainer.step, "tokens": trainer.tokens, "split": split, **finite}
        self.run.records.append(line)
        return line


def new_trainer(resolved: ResolvedTexts, settings: ModelSettings, steps: int) -> Trainer:
    """Build the initial model and return a trainer that trains it for ``steps`` steps."""
    return Trainer(resolved.model(settings), resolved.recipe, resolved.execution, steps=steps)


def seconds_per_step(
    trainer: Trainer, train: SplitExamples, limit: float, warm: int = _WARM_STEPS
) -> float:
    """Return the number of seconds per training step, measured over about ``limit`` seconds.

    The first ``warm`` steps are not timed. The measurement trains the model of ``trainer``, so
    discard that model afterwards.
    """
    started, ranks = time.monotonic(), trainer.ranks
    while trainer.step <= warm or ranks.agreed(time.monotonic() - started < limit):
        trainer.advance(train.training_batch(trainer.step))
        if trainer.step == warm:
            trainer.means()  # waits for the device
            started = time.monotonic()
    trainer.means()
    return ranks.agreed((time.monotonic() - started) / (trainer.step - warm))


class _Clock:
    """Computes speeds and the remaining time, counted from the start of this process."""

    def __init__(self, training: Training, trainer: Trainer) -> None:
        self._training, self._trainer = training, trainer
        self._step, self._tokens = trainer.step, trainer.tokens
        self._flops, _ = trainer.all_flops()
        self._started = time.monotonic()

    def update(self, loss: float) -> TrainingProgress:
        training, trainer = self._training, self._trainer
        execution, steps = training.resolved.execution, trainer.steps
        seconds = max(time.monotonic() - self._started, 1e-9)
        tokens = (trainer.tokens - self._tokens) / seconds
        flops = WHOLE_STEP * (trainer.all_flops()[0] - self._flops) / seconds
        numbers = tokens * training.numbers_per_token
        mfu = training.run.rate.share(flops / execution.ranks.count)
        speed = Speed(tokens, numbers, flops, mfu)
        memory = peak_memory(execution.device)
        left = (steps - trainer.step) * seconds / (trainer.step - self._step)
        return TrainingProgress(
            step=trainer.step,
            steps=steps,
            loss=loss,
            speed=speed,
            peak_memory=memory,
            seconds_left=left,
        )


def prefetched(make: Callable[[int], T], first: int, end: int, workers: int) -> Iterator[T]:
    """Yield ``make(first)``, ..., ``make(end - 1)``, computed ahead of time by ``workers`` threads.

    ``make`` must be a pure function of its index, so that threads affect only the speed. If
    ``workers`` is 0, no threads are used.
    """
    if workers == 0:
        yield from map(make, range(first, end))
        return
    with ThreadPoolExecutor(workers, "prefetch") as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for index in range(first, end):
                waiting.append(pool.submit(make, index))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
