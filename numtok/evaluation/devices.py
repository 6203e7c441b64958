"""Rows on several devices, one process each, in batches that memory has room for.

The work is cut into the same items and batches whatever the number of devices, and results come in
order. So predictions do not depend on the number of devices; on CPUs they are equal to the bit if
each process has as many threads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import torch

from numtok.arrays import Ints
from numtok.errors import TrainingFailed
from numtok.models.model import Model
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.device import device_count, oom_advice

Reader = TypeVar("Reader")
Item = TypeVar("Item")
Result = TypeVar("Result")
Made = TypeVar("Made")
MadeOf = TypeVar("MadeOf", covariant=True)
Note = Callable[[str], None]  # prints a message for a waiting user
Done = Callable[[int, int], None]  # reports progress: numbers done, of all
Read = Callable[[Reader, Item, Note], Result]

_DIED = "Run the same command again; fewer --devices need less memory"
# Most tokens of a batch. More leave a core's cache and take half as long again or longer.
_TOKENS: Mapping[str, int] = {"cpu": 1 << 12, "cuda": 1 << 16, "mps": 1 << 14}


@dataclass
class BatchSizer:
    """Limits of a batch, lowered when memory runs out: rows, and tokens including padding.

    >>> room = BatchSizer(256, 4096)
    >>> room.rows(10), room.rows(1000), room.rows(10_000)
    (256, 4, 1)
    """

    most: int
    tokens: int

    @classmethod
    def of(cls, model: Model, most: int, tokens: Mapping[str, int] = _TOKENS) -> "BatchSizer":
        """Return the limits for the model's device; ``tokens`` by device type, such as "cpu"."""
        return cls(most, tokens[next(model.parameters()).device.type])

    def rows(self, longest: int) -> int:
        """Return the number of rows of up to ``longest`` tokens, at least one."""
        return max(1, min(self.most, self.tokens // max(1, longest)))

    def planned(self, lengths: Ints) -> Iterator[Ints]:
        """Yield indices of ``lengths`` (int64[n], tokens) in batches, each index once."""
        # Rows of similar length go together, because padding costs time; the longest come first.
        waiting = np.argsort(-lengths, kind="stable")
        while len(waiting):
            rows = self.rows(int(lengths[waiting[0]]))
            yield waiting[:rows]
            waiting = waiting[rows:]


class BatchReader(Protocol[MadeOf]):
    """Reads rows batch by batch."""

    @property
    def room(self) -> BatchSizer:
        """Limits of a batch."""

    @property
    def lengths(self) -> Ints:
        """Number of tokens of each query, int64[n]."""

    def answers(self, chosen: Ints) -> MadeOf:
        """Return the answers to some queries, by their indices int64[k]."""

    def forget(self) -> None:
        """Release memory that was kept for the next batch."""


@dataclass(frozen=True)
class Devices:
    """The devices that a command uses; with one, this process does everything."""

    workers: Workers

    @property
    def count(self) -> int:
        """Number of devices."""
        return self.workers.count

    def each(
        self, reader: Reader, read: Read[Reader, Item, Result], items: Iterable[Item], note: Note
    ) -> Iterator[Result]:
        """Yield ``read(reader, item, note)`` for each item, in order; a few items are taken at a
        time.

        A reader is sent to each process once; models and data in the store are read there again.
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
        """Yield indices int64[k] of queries with their answers, each query once; in smaller batches
        when memory runs out."""
        planned = reader.room.planned(reader.lengths)
        for results in self.each(reader, _read_batch, planned, note):
            yield from results


@contextmanager
def devices(requested: str, device: torch.device) -> Iterator[Devices]:
    """Open the devices of this type that ``--devices`` names; UsageError if there are too few."""
    count = device_count(requested, device)
    gpus = gpu_slots(count, torch.cuda.device_count()) if device.type == "cuda" else ()
    with Workers(count, gpus, _DIED) as workers:
        yield Devices(workers)


ONE = Devices(Workers(1))


def _with_notes(
    reader: Reader, threads: int, task: tuple[Read[Reader, Item, Result], Item]
) -> tuple[Result, list[str]]:
    """Read an item in a worker process; its notes travel with the result."""
    torch.set_num_threads(threads)
    notes: list[str] = []
    read, item = task
    return read(reader, item, notes.append), notes


def _read_batch(reader: BatchReader[Made], chosen: Ints, note: Note) -> list[tuple[Ints, Made]]:
    """Read a planned batch: indices int64[k] with their answers, each index once.

    When memory runs out, ``note`` reports it and batches of half as many tokens follow, down to one
    row, then TrainingFailed.
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
