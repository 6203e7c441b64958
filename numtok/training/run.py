"""Checkpoints, signals, log and timing of training runs on texts and on tables.

A killed run resumes from its checkpoint. On the first SIGINT or SIGTERM, the run finishes the
current step or epoch and writes a checkpoint; then the signal takes effect.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
import torch

from numtok import files
from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.store.draft import Draft
from numtok.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from numtok.training.device import MatmulRate, peak_memory
from numtok.training.log import LOG_FILE, Line
from numtok.training.trainer import Execution

_CHECKPOINT_SECONDS = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_P = TypeVar("_P", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True)
class ResolvedTraining:
    """Base class for training runs that have not started. The parts of the model, such as its head,
    are already built and checked.

    Subclasses add ``default_name``, ``settings`` (which determine the version of the model),
    ``configuration`` (readable settings that all seeds of an experiment share), ``less_memory``
    (advice for an out-of-memory error) and ``files`` (names of the model's files).

    config
        Options with all defaults filled in, for the manifest and the recorded command.
    devices
        Number of training processes to start.
    """

    kind: ClassVar[str]  #: ``texts`` or ``tables``

    config: Config
    data: Artifact
    execution: Execution
    devices: int

    @property
    def parents(self) -> list[Artifact]:
        """Artifacts that the model is made from."""
        return [self.data]


class _RunState(msgspec.Struct, Generic[_P], frozen=True, forbid_unknown_fields=True):
    """Plain values of a checkpoint: the log, the training time so far, and the values of the
    learner."""

    records: list[Line]
    seconds: float
    learner: _P


@dataclass(eq=False, kw_only=True)
class TrainingRun(Generic[_P]):
    """Checkpoints, signals, log and timing for training one model.

    plain
        Type of the plain (non-tensor) values in a checkpoint.
    execution
        Execution options. All ranks save a checkpoint together, and the first rank writes it. A
        signal to any rank stops all of them.
    note
        Function that prints a note to the user.
    part
        Suffix that identifies the model if the draft has several, such as ``-fold3``. Each of these
        models has its own checkpoint.
    records
        Lines of the log, ``metrics.jsonl``.
    seconds
        Training time, including earlier runs in the same draft.
    """

    draft: Draft
    plain: type[_P]
    execution: Execution
    note: Callable[[str], None]
    part: str = ""
    records: list[Line] = field(default_factory=list)
    seconds: float = 0.0
    rate: MatmulRate = field(init=False)

    def __post_init__(self) -> None:
        self.rate = MatmulRate(self.execution.device, self.execution.bfloat16)

    def checkpoint(self) -> Checkpoint[_P] | None:
        """Return the last checkpoint, or None if the draft has none.

        This also restores the log and the training time.
        """
        kind = _RunState[self.plain]  # type: ignore[name-defined]
        checkpoint = read_checkpoint(self.draft, kind, self.part)
        if checkpoint is None:
            return None
        self.records, self.seconds = checkpoint.plain.records, checkpoint.plain.seconds
        return Checkpoint(checkpoint.tensors, checkpoint.plain.learner)

    @contextmanager
    def running(
        self, state: Callable[[], Checkpoint[_P]]
    ) -> Iterator[Callable[[int, bool | None, str], None]]:
        """Context manager for the training loop: measures its time, writes checkpoints and handles
        signals.

        It yields a function to call after each step or epoch, with three arguments: the number of
        steps or epochs done, whether a checkpoint is due (None to decide by time), and a phrase for
        messages such as "step 20 of 100". ``state`` returns the checkpoint to write.
        """
        before, started = self.seconds, time.monotonic()
        saved = started
        with _Signals() as signals:

            def after(done: int, due: bool | None, where: str) -> None:
                nonlocal saved
                self.seconds = before + time.monotonic() - started
                stop = signals.received is not None
                if due is None:
                    due = time.monotonic() - saved > _CHECKPOINT_SECONDS
                due, stop = self.execution.ranks.any(due, stop)
                if due or stop:
                    self.save(done, state())
                    self.execution.ranks.any()  # all ranks wait until it is written
                    saved = time.monotonic()
                if stop:
                    self.note(f"stopped at {where}. To resume, run the same command again")
                    signals.deliver()

            yield after

    def save(self, done: int, checkpoint: Checkpoint[_P]) -> None:
        """Write a checkpoint after ``done`` steps or epochs. Only the first rank writes."""
        if self.execution.ranks.first:
            plain = _RunState(self.records, self.seconds, checkpoint.plain)
            write_checkpoint(self.draft, done, Checkpoint(checkpoint.tensors, plain), self.part)

    def timing(self, flops: float, speeds: Mapping[str, float]) -> dict[str, Any]:
        """Return the contents of ``timing.json``.

        Times and speeds cover all runs in the draft; the peak memory covers only this run.

        flops
            Training FLOPs.
        speeds
            Totals of other quantities, such as tokens. They are reported per second.
        """
        self.rate.remeasure()
        device, ranks = self.execution.device, self.execution.ranks
        share = self.rate.share(flops / max(self.seconds, 1e-9) / ranks.count)
        return clocks(
            self.seconds,
            flops,
            speeds,
            mfu=share,
            matmul_rate=self.rate.per_second,
            peak_memory=max(ranks.gathered(peak_memory(device))),
        ) | {"device": device.type, "devices": ranks.count}


def clocks(
    seconds: float,
    flops: float,
    speeds: Mapping[str, float],
    *,
    mfu: float,
    matmul_rate: float,
    peak_memory: int,
) -> dict[str, Any]:
    """Return the entries of ``timing.json`` for time, speed and memory.

    ``speeds`` maps the names of quantities to their totals. Each total is reported per second.
    """
    least = max(seconds, 1e-9)
    return {
        "seconds": seconds,
        **{f"{what}_per_second": count / least for what, count in speeds.items()},
        "flops_per_second": flops / least,
        "mfu": mfu,
        "matmul_flops_per_second": matmul_rate,
        "peak_memory": peak_memory,
        "threads": torch.get_num_threads(),
    }


def write_log(draft: Draft, records: Sequence[Line]) -> None:
    """Write the lines of the log to ``metrics.jsonl`` in a draft."""
    # Sorted, because a checkpoint may restore the fields in another order.
    lines = [msgspec.json.encode(record, order="sorted") + b"\n" for record in records]
    files.write_atomic(draft.path / LOG_FILE, b"".join(lines))


class _Signals:
    """Context manager that records a first signal in ``received``. A second signal ends the
    process.

    At the end of the block, the recorded signal is raised again for its former handler, unless an
    error ends the block. :meth:`deliver` does this earlier.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        # Python delivers signals only to the main thread.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def deliver(self) -> None:
        """Raise the recorded signal again; returns if it is ignored, as under ``nohup``."""
        number, self.received = self.received, None
        if number is not None:
            signal.signal(number, self._before.pop(number))
            signal.raise_signal(number)
            self._before[number] = signal.signal(number, self._note)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.received is not None and kind is None:
            signal.raise_signal(self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        signal.signal(number, signal.SIG_DFL)
