"""Rows of a split as batches to train on, to validate by and to query; and exact answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar
from numtok.encoding.schemes.base import ChannelScheme
from numtok.encoding.splits import learnt_values
from numtok.models.batches import Batch, Batches
from numtok.models.generation import Writer
from numtok.models.model import Model
from numtok.models.objectives.base import Objective
from numtok.models.training_batch import TrainingBatch, autoregressive_batch, masked_batch
from numtok.seeds import generator
from numtok.training.curriculum import CurriculumSampler
from numtok.training.log import EXACT
from numtok.training.ranks import ALONE, Ranks

_ROWS = 512  # at most: of 90% the standard error is 1.3%
_TOKENS = 1 << 14  # written at each look, at most
_VALUES = 12  # of a group at most; task names of a benchmark would be a log of their own
_ENOUGH = 20  # rows of a value at least: of fewer a share says little


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactAnswers:
    """Some rows and their answers; they are the same ones at each look, whatever the seed."""

    batches: Batches
    codec: Codec
    grammar: Grammar
    rows: NDArray[np.int64]  # [n], the shortest prompt first
    answers: list[str]  # n true ones, as the codec reads their tokens back
    longest: int  # tokens of the longest of them
    size: int  # rows that are written together
    parts: dict[str, NDArray[np.bool_]]  # [n] each: the rows of `group=value`

    @classmethod
    def of(
        cls, samples: EncodedSplit, batches: Batches, codec: Codec, size: int
    ) -> "ExactAnswers | None":
        """Choose the rows; None if no row has an answer, and for schemes that write a value next to
        the tokens, which is never exact."""
        asked = np.flatnonzero(samples.answer_start >= 0)
        if isinstance(codec.scheme, ChannelScheme) or not len(asked):
            return None
        width = int((samples.lengths[asked] - samples.answer_start[asked]).max())
        most = max(1, min(_ROWS, _TOKENS // (width + 1)))
        rows = asked[generator(0, "answers").permutation(len(asked))[:most]]
        rows = rows[np.argsort(samples.answer_start[rows], kind="stable")]
        answers = [codec.decode(*samples.answer(row)[:3]) for row in rows.tolist()]
        parts = _parts(samples, rows)
        return cls(
            batches=batches,
            codec=codec,
            grammar=Grammar(codec.scheme),
            rows=rows,
            answers=answers,
            longest=width,
            size=size,
            parts=parts,
        )

    def shares(self, model: Model, ranks: Ranks = ALONE) -> dict[str, float]:
        """Fraction of the rows whose answer the model writes exactly, and then ends:
        ``{"exact": 0.5, "exact,operation=add": 0.25, ...}``. Numbers obey the scheme's grammar."""
        exact = ranks.total(torch.from_numpy(self._exact(model, ranks).astype(np.uint8))).numpy()
        parts = {f"{EXACT},{part}": float(exact[of].mean()) for part, of in self.parts.items()}
        return {EXACT: float(exact.mean())} | parts

    def _exact(self, model: Model, ranks: Ranks) -> NDArray[np.bool_]:
        """bool[n]: which of the rows, of several ranks those that this one writes."""
        model.eval()
        # One token more than any answer: who writes on is wrong.
        writer = Writer(
            model=model,
            codec=self.codec,
            grammar=self.grammar,
            constrained=True,
            longest=self.longest + 1,
        )
        exact, memory = np.zeros(len(self.rows), np.bool_), None
        for first in range(0, len(self.rows), self.size)[ranks.rank :: ranks.count]:
            some = slice(first, first + self.size)
            written, memory = writer.write(self.batches.of(self.rows[some]), memory)
            exact[some] = [
                ended and self.codec.decode(*written.answer(place), errors="replace") == true
                for place, (ended, true) in enumerate(
                    zip(written.ended.tolist(), self.answers[some], strict=True)
                )
            ]
        return exact


def _parts(samples: EncodedSplit, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Of each group with a few values: the rows of each value that enough of them have."""
    found = {}
    for group, column in samples.groups.items():
        values = column.take(rows)
        known = sorted(pc.unique(values.drop_null()).to_pylist())
        if 2 <= len(known) <= _VALUES:
            for value in known:
                of = np.asarray(pc.equal(values, value).fill_null(False))
                if np.count_nonzero(of) >= _ENOUGH:
                    found[f"{group}={value}"] = of
    return found


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
