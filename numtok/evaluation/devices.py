"""Prediction on one or more devices, with one process per device, in batches that fit in memory.

Work is divided into the same items and batches for any number of devices, and results are returned
in order. Predictions therefore do not depend on the number of devices. On CPUs, they are identical
to the last bit if each process has the same number of threads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import nn

from numtok.arrays import Ints
from numtok.errors import TrainingFailed
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.device import device_count, oom_advice

Reader = TypeVar("Reader")
Item = TypeVar("Item")
Result = TypeVar("Result")
Made = TypeVar("Made")
MadeOf = TypeVar("MadeOf", covariant=True)
Note = Callable[[str], None]  # prints a message for a waiting user
Done = Callable[[int, int], None]  # reports progress: number of items done, and in total
Read = Callable[[Reader, Item, Note], Result]

_DIED = "Run the same command again; fewer --devices need less memory"
# Maximum number of tokens in a batch. On CPUs, larger batches exceed a core's cache and take at
# least 1.5 times as long.
_TOKENS: Mapping[str, int] = {"cpu": 1 << 12, "cuda": 1 << 16, "mps": 1 << 14}


@dataclass
class BatchSizer:
    """Limits on the batch size, which are lowered when memory runs out.

    most
        Maximum number of rows.
    tokens
        Maximum number of tokens, including padding.

    >>> room = BatchSizer(256, 4096)
    >>> room.rows(10), room.rows(1000), room.rows(10_000)
    (256, 4, 1)
    """

    most: int
    tokens: int

    @classmethod
    def of(cls, model: nn.Module, most: int, tokens: Mapping[str, int] = _TOKENS) -> "BatchSizer":
        """Return the limits for a model on its device.

        ``most`` is the maximum number of rows. ``tokens`` maps each type of device, such as "cpu",
        to the maximum number of tokens.
        """
        return cls(most, tokens[next(model.parameters()).device.type])

    def rows(self, longest: int) -> int:
        """Return the maximum number of rows in a batch whose longest row has ``longest`` tokens, at
        least 1."""
        return max(1, min(self.most, self.tokens // max(1, longest)))

    def planned(self, lengths: Ints) -> Iterator[Ints]:
        """Divide rows into batches, given the number of tokens of each row, int64[n].

        Yields the indices of the rows in each batch, starting with the longest rows.
        """
        # Rows of similar length go together, because padding costs time; the longest come first.
        waiting = np.argsort(-lengths, kind="stable")
        while len(waiting):
            rows = self.rows(int(lengths[waiting[0]]))
            yield waiting[:rows]
            waiting = waiting[rows:]


class BatchReader(Protocol[MadeOf]):
    """Protocol for predictors that :meth:`Devices.batches` can run, such as ``labels.LabelReader``.

    A predictor answers queries in batches. A query is a row, or a set of numbers in a row that are
    predicted together.
    """

    @property
    def room(self) -> BatchSizer:
        """Limits on the batch size."""

    @property
    def lengths(self) -> Ints:
        """Number of tokens of each query, int64[n]."""

    def answers(self, chosen: Ints) -> MadeOf:
        """Return the answers to the queries with the indices ``chosen``, int64[k]."""

    def forget(self) -> None:
        """Release memory that is kept between batches."""


@dataclass(frozen=True)
class Devices:
    """Devices that a command uses, each with a worker process. A single device is used by this
    process, without workers."""

    workers: Workers

    @property
    def count(self) -> int:
        """Number of devices."""
        return self.workers.count

    def each(
        self, reader: Reader, read: Read[Reader, Item, Result], items: Iterable[Item], note: Note
    ) -> Iterator[Result]:
        """Yield ``read(reader, item, note)`` for each item, in order.

        Only a few items are taken from ``items`` at a time. The reader is sent to each process
        once, and each process reads models and data from the store itself.
        """
        if self.count == 1:
            yield from (read(reader, item, note) for item in items)
            return
        work = partial(_with_notes, reader, threads_each(self.count))
        for result, notes in self.workers.in_order(work, ((read, item) for item in items)):
            for message in notes:
                note(message)
            yield result

    def batches(self, reader: BatchReader[Made], note: Note) -> Iterator[tuple[Ints, Made]]:
        """Yield, for each batch, the indices of its queries, int64[k], and the answers of
        ``reader``.

        Every query is in exactly one batch. If memory runs out, batches become smaller.
        """
        planned = reader.room.planned(reader.lengths)
        for results in self.each(reader, _read_batch, planned, note):
            yield from results


@contextmanager
def devices(requested: str, device: torch.device) -> Iterator[Devices]:
    """Context manager that opens the devices requested with ``--devices``. All devices have the
    same type as ``device``. Raises UsageError if not enough devices are available."""
    count = device_count(requested, device)
    gpus = gpu_slots(count, torch.cuda.device_count()) if device.type == "cuda" else ()
    with Workers(count, gpus, _DIED) as workers:
        yield Devices(workers)


ONE = Devices(Workers(1))


def _with_notes(
    reader: Reader, threads: int, task: tuple[Read[Reader, Item, Result], Item]
) -> tuple[Result, list[str]]:
    """Read an item in a worker process. Notes are returned with the result."""
    torch.set_num_threads(threads)
    notes: list[str] = []
    read, item = task
    return read(reader, item, notes.append), notes


def _read_batch(reader: BatchReader[Made], chosen: Ints, note: Note) -> list[tuple[Ints, Made]]:
    """Read a planned batch. Returns indices int64[k] with their answers, each index once.

    If memory runs out, ``note`` reports it and the batch is divided into batches with half as many
    tokens, down to one row. Raises TrainingFailed if one row does not fit.
    """
    room, waiting, results = reader.room, chosen, []
    while len(waiting):
        longest = int(reader.lengths[waiting[0]])
        batch = waiting[: room.rows(longest)]
        try:
            with oom_advice("--batch 1; use a machine with more memory"):
                results.append((batch, reader.answers(batch)))
        except TrainingFailed:
            reader.forget()
            if len(batch) == 1:
                raise
            room.tokens = len(batch) * longest // 2
            note(f"out of memory with --batch {len(batch)}; continuing with {len(batch) // 2}")
            continue
        waiting = waiting[len(batch) :]
    return results
