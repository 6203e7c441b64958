"""How many rows go through a model at a time, and fewer where memory is out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from numtok.arrays import Ints
from numtok.errors import TrainingFailed
from numtok.models.model import Model
from numtok.training.trainer import oom_advice

Result = TypeVar("Result")
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

    def batches(
        self,
        lengths: Ints,
        work: Callable[[Ints], Result],
        note: Callable[[str], None],
        forget: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[Ints, Result]]:
        """Indices of ``lengths`` (int64[n], tokens), with what ``work`` makes of them, each once.

        Where memory is out, ``work`` is to ``forget`` what it kept, and batches of half as many
        tokens follow, which ``note`` tells; down to one row, then TrainingFailed.
        """
        # Of like length together, since pads cost time; what needs most memory first.
        waiting = np.argsort(-lengths, kind="stable")
        while len(waiting):
            longest = int(lengths[waiting[0]])
            chosen = waiting[: self.rows(longest)]
            try:
                with oom_advice("--batch 1; evaluate where there is more of it"):
                    made = work(chosen)
            except TrainingFailed:
                forget()
                if len(chosen) == 1:
                    raise
                self.tokens = len(chosen) * longest // 2
                note(f"out of memory with --batch {len(chosen)}; going on with {len(chosen) // 2}")
                continue
            waiting = waiting[len(chosen) :]
            yield chosen, made
