"""Rows of a split as the batches that are learnt, looked at, and asked for their numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_values
from numtok.models.batches import Batch, Batches
from numtok.models.objectives.base import Objective
from numtok.models.training_batch import TrainingBatch, autoregressive_batch, masked_batch
from numtok.seeds import generator
from numtok.training.curriculum_sampler import CurriculumSampler
from numtok.training.exact_match import ExactAnswers
from numtok.training.ranks import ALONE, Ranks

_VALIDATION_ROWS = 4096  # of the validation split at most


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
        seen = self.objective.example(batch, generator(self._seed, "masks", step))
        random, rows = generator(self._seed, "places", step), len(seen.tokens)
        of_batch, of_rows = random.random(), random.random(rows)
        return replace(seen, moved_places=np.column_stack([np.full(rows, of_batch), of_rows]))

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

    def queries(self, ranks: Ranks = ALONE) -> Iterator[TrainingBatch]:
        """The numbers of some rows as evaluation asks for them, to measure errors by.

        The targets; where no row has any, one number of each row with all others in sight, and
        from left to right every number. Of several ranks each has a batch in turn.
        """
        for batch, first in self._some_batches(ranks):
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
        for batch, first in self._some_batches(ALONE):
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

    def _some_batches(self, ranks: Ranks) -> Iterator[tuple[Batch, int]]:
        draws = generator(0, "looked at").permutation(len(self._known))[:_VALIDATION_ROWS]
        rows = self._known[draws]
        rows = rows[np.argsort(self.samples.lengths[rows], kind="stable")]
        for first in range(0, len(rows), self._batch)[ranks.rank :: ranks.count]:
            yield self.batches.of(rows[first : first + self._batch]), first
