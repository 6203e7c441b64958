"""Which rows each step of a run under a curriculum learns: a pure function of (seed, step)."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.dataset import EncodedSplit
from numtok.errors import UsageError
from numtok.models.batches import EpochSampler
from numtok.seeds import seed_of
from numtok.training.curriculum import Curriculum, Phase, shares


class CurriculumSampler:
    """A curriculum over the rows of a split, for a run of so many steps in batches of ``size``.

    In each phase the rows of each of its choices are gone through in an order of their own, epoch
    after epoch, so a run goes on at any step of any phase. Where a phase mixes several, each has
    its share of every batch, however few rows it has.
    """

    def __init__(
        self, curriculum: Curriculum, samples: EncodedSplit, size: int, steps: int
    ) -> None:
        """Raises UsageError, with the phase, for rows that are not there and batches too small."""
        self._starts = curriculum.starts(steps)
        self._phases = [
            _orders(number, phase, samples, size)
            for number, phase in enumerate(curriculum.phase, 1)
        ]

    def at(self, seed: int, step: int) -> NDArray[np.int64]:
        """int64[rows of the batch]: those that a step learns."""
        phase = min(bisect_right(self._starts, step), len(self._phases)) - 1
        within = step - self._starts[phase]
        return np.concatenate(
            [
                order.at(seed_of(seed, "phase", phase, number), within)
                for number, order in enumerate(self._phases[phase])
            ]
        )

    def row_count(self, steps: int) -> int:
        """How many rows so many steps learn."""
        return sum(
            order.row_count(max(0, min(steps, end) - first))
            for orders, first, end in zip(
                self._phases, self._starts, self._starts[1:], strict=False
            )
            for order in orders
        )


def _orders(number: int, phase: Phase, samples: EncodedSplit, size: int) -> list[EpochSampler]:
    if len(phase.rows) > size:
        raise UsageError(
            f"--curriculum: phase {number} mixes {len(phase.rows)} choices of rows and --batch "
            f"{size} has not a row for each; give a larger one"
        )
    counts = shares([one.weight for one in phase.rows], size)
    try:
        return [
            EpochSampler(one.chosen(samples), samples.lengths, count, filled=len(counts) > 1)
            for one, count in zip(phase.rows, counts, strict=True)
        ]
    except UsageError as error:
        raise UsageError(f"--curriculum: phase {number}: {error}") from None
