"""Rows on several devices: a process for each, to which who reads them goes as a whole, once.

What is done of rows is cut into the same tasks whatever the number of devices, batches above all,
and gathered in order. So predictions are those of one device; on a CPU to the bit, where a process
has as many threads.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from numtok.arrays import Ints
from numtok.evaluation.batch_size import BatchReader, read_batch
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.device import device_count

Reader = TypeVar("Reader")
Result = TypeVar("Result")
Made = TypeVar("Made")
Note = Callable[[str], None]
Task = Callable[[Reader, Note], Result]  # what a reader does, and whom it tells of it

_DIED = "run the same command again; fewer --devices need less memory"


@dataclass(frozen=True)
class Devices:
    """The devices that a command works with; with one, this process does everything."""

    workers: Workers

    @property
    def count(self) -> int:
        """How many they are."""
        return self.workers.count

    def each(
        self, reader: Reader, tasks: Iterable[Task[Reader, Result]], note: Note
    ) -> Iterator[Result]:
        """What becomes of each task, in order; they are taken a few at a time.

        Reader and tasks go to other processes, and results come back: models and data that lie in
        the store are read there anew.
        """
        if self.count == 1:
            yield from (task(reader, note) for task in tasks)
            return
        work = _ReaderWork(reader, threads_each(self.count))
        for result, notes in self.workers.in_order(work, tasks):
            for one in notes:
                note(one)
            yield result

    def batches(self, reader: BatchReader[Made], note: Note) -> Iterator[tuple[Ints, Made]]:
        """Indices int64[k] of what is asked for, with what the reader makes of them, each once;
        smaller batches where memory is out (``batch_size.read_batch``)."""
        planned = reader.room.planned(reader.lengths)
        for made in self.each(reader, map(_BatchTask, planned), note):
            yield from made


@contextmanager
def devices(asked: str, device: torch.device) -> Iterator[Devices]:
    """As many as ``--devices`` says, of this kind; UsageError for more GPUs than there are."""
    count = device_count(asked, device)
    gpus = gpu_slots(count, torch.cuda.device_count()) if device.type == "cuda" else ()
    with Workers(count, gpus, _DIED) as workers:
        yield Devices(workers)


ONE = Devices(Workers(1))


@dataclass(frozen=True)
class _BatchTask:
    """A batch, smaller ones where memory is out."""

    chosen: Ints

    def __call__(self, reader: BatchReader[Made], note: Note) -> list[tuple[Ints, Made]]:
        return list(read_batch(reader, self.chosen, note))


@dataclass(frozen=True)
class _ReaderWork(Generic[Reader]):
    """A reader in a process of its own, and what it tells with each result."""

    reader: Reader
    threads: int

    def __call__(self, task: Task[Reader, Result]) -> tuple[Result, list[str]]:
        torch.set_num_threads(self.threads)
        notes: list[str] = []
        return task(self.reader, notes.append), notes
