"""How many rows go through a model at a time, and fewer where memory is out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from numtok.arrays import Ints
from numtok.errors import TrainingFailed
from numtok.models.model import Model
from numtok.training.device import oom_advice

Made = TypeVar("Made")
MadeOf = TypeVar("MadeOf", covariant=True)
# Tokens of a batch, at most: more leave a core's cache, and take half as long again and more.
_TOKENS: Mapping[str, int] = {"cpu": 1 << 12, "cuda": 1 << 16, "mps": 1 << 14}


@dataclass
class BatchSizer:
    """What a batch may have, for as long as memory is enough: rows, and tokens with their pads.

    >>> room = BatchSizer(256, 4096)
    >>> room.rows(10), room.rows(1000), room.rows(10_000)
    (256, 4, 1)
    """

    most: int
    tokens: int

    @classmethod
    def of(cls, model: Model, most: int, tokens: Mapping[str, int] = _TOKENS) -> "BatchSizer":
        """On the model's device; ``tokens`` by its type, such as "cpu"."""
        return cls(most, tokens[next(model.parameters()).device.type])

    def rows(self, longest: int) -> int:
        """How many rows of up to ``longest`` tokens, at least one."""
        return max(1, min(self.most, self.tokens // max(1, longest)))

    def planned(self, lengths: Ints) -> Iterator[Ints]:
        """Indices of ``lengths`` (int64[n], tokens) in batches, each once."""
        # Of like length together, since pads cost time; what needs most memory first.
        waiting = np.argsort(-lengths, kind="stable")
        while len(waiting):
            rows = self.rows(int(lengths[waiting[0]]))
            yield waiting[:rows]
            waiting = waiting[rows:]


class BatchReader(Protocol[MadeOf]):
    """Who makes something of rows, a batch at a time."""

    @property
    def room(self) -> BatchSizer:
        """How many go together."""

    @property
    def lengths(self) -> Ints:
        """int64[n]: the tokens of each thing that is asked for."""

    def answers(self, chosen: Ints) -> MadeOf:
        """What is made of some of them, by their indices int64[k]."""

    def forget(self) -> None:
        """Give memory back that was kept for the next batch."""


def read_batch(
    reader: BatchReader[Made], chosen: Ints, note: Callable[[str], None]
) -> Iterator[tuple[Ints, Made]]:
    """Indices of a batch that was planned, int64[k], with what is made of them, each once.

    Where memory is out, batches of half as many tokens follow, which ``note`` tells; down to one
    row, then TrainingFailed.
    """
    room, waiting = reader.room, chosen
    while len(waiting):
        longest = int(reader.lengths[waiting[0]])
        some = waiting[: room.rows(longest)]
        try:
            with oom_advice("--batch 1; evaluate where there is more of it"):
                made = reader.answers(some)
        except TrainingFailed:
            reader.forget()
            if len(some) == 1:
                raise
            room.tokens = len(some) * longest // 2
            note(f"out of memory with --batch {len(some)}; going on with {len(some) // 2}")
            continue
        waiting = waiting[len(some) :]
        yield some, made
