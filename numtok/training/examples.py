"""Batches for training, validation and calibration, and exact-match checks of generated answers."""

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

_ROWS = 512  # at most: the standard error of 90% is then 1.3%
_TOKENS = 1 << 14  # generated per validation, at most
_VALUES = 12  # per group at most: the task names of a benchmark would flood the log
_ENOUGH = 20  # rows per value at least: a fraction of fewer rows is mostly noise


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactAnswers:
    """Rows for which a model generates answers during validation, to compare them with true
    answers.

    Every validation uses the same rows, regardless of the seed.
    """

    batches: Batches
    codec: Codec
    grammar: Grammar
    rows: NDArray[np.int64]  # [n], the shortest prompt first
    answers: list[str]  # [n] true answers, as the codec decodes their tokens
    longest: int  # tokens of the longest answer
    size: int  # rows generated together
    parts: dict[str, NDArray[np.bool_]]  # [n] each: which rows have `group=value`

    @classmethod
    def of(
        cls, samples: EncodedSplit, batches: Batches, codec: Codec, size: int
    ) -> "ExactAnswers | None":
        """Choose the rows, or return None if exact matches are impossible.

        This is the case if no row has an answer, or if the scheme has a value channel, because
        numbers generated in a value channel are never exact. ``size`` is the number of answers that
        are generated together.
        """
        answered = np.flatnonzero(samples.answer_start >= 0)
        if isinstance(codec.scheme, ChannelScheme) or not len(answered):
            return None
        width = int((samples.lengths[answered] - samples.answer_start[answered]).max())
        most = max(1, min(_ROWS, _TOKENS // (width + 1)))
        rows = answered[generator(0, "answers").permutation(len(answered))[:most]]
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
        """Return the fraction of rows for which the model generates exactly the true answer and
        then stops.

        The result also has a fraction for each common value of a group, for example ``{"exact":
        0.5, "exact,operation=add": 0.25}``. Generated numbers are constrained to the scheme's
        grammar.
        """
        exact = ranks.total(torch.from_numpy(self._exact(model, ranks).astype(np.uint8))).numpy()
        parts = {f"{EXACT},{part}": float(exact[rows].mean()) for part, rows in self.parts.items()}
        return {EXACT: float(exact.mean())} | parts

    def _exact(self, model: Model, ranks: Ranks) -> NDArray[np.bool_]:
        """Return which rows are exact, bool[n]; False for rows that other ranks generate."""
        model.eval()
        # One token more than the longest answer: any longer output is wrong.
        writer = Writer(
            model=model,
            codec=self.codec,
            grammar=self.grammar,
            constrained=True,
            longest=self.longest + 1,
        )
        exact, memory = np.zeros(len(self.rows), np.bool_), None
        for first in range(0, len(self.rows), self.size)[ranks.rank :: ranks.count]:
            chunk = slice(first, first + self.size)
            written, memory = writer.write(self.batches.of(self.rows[chunk]), memory)
            exact[chunk] = [
                ended and self.codec.decode(*written.answer(row), errors="replace") == true
                for row, (ended, true) in enumerate(
                    zip(written.ended.tolist(), self.answers[chunk], strict=True)
                )
            ]
        return exact


def _parts(samples: EncodedSplit, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Return which rows have each ``group=value``, for groups with few values and values with
    enough rows."""
    parts = {}
    for group, column in samples.groups.items():
        values = column.take(rows)
        distinct = sorted(pc.unique(values.drop_null()).to_pylist())
        if 2 <= len(distinct) <= _VALUES:
            for value in distinct:
                matching = np.asarray(pc.equal(values, value).fill_null(False))
                if np.count_nonzero(matching) >= _ENOUGH:
                    parts[f"{group}={value}"] = matching
    return parts


_VALIDATION_ROWS = 4096  # of the validation split at most


class SplitExamples:
    """The rows of a split as examples for a training objective, used for training or validation.

    An example is a pure function of (seed, purpose, step). ``classes`` are the labels of a
    classification objective. ``curriculum`` chooses the rows of each training step; if it is None,
    each epoch visits every row once.
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
        # Rows to validate with: a row must have a label that the model was trained on.
        usable = samples.class_of(classes) >= 0 if classes else np.ones(len(samples), np.bool_)
        self._usable = np.flatnonzero(usable)
        self._codec = codec
        self._batch = batch
        self._seed = seed

    def training_batch(self, step: int) -> TrainingBatch:
        """Return the training batch for a step."""
        batch = self.batches.of(self._order.at(self._seed, step))
        example = self.objective.example(batch, generator(self._seed, "masks", step))
        random, rows = generator(self._seed, "places", step), len(example.tokens)
        of_batch, of_rows = random.random(), random.random(rows)
        return replace(example, moved_places=np.column_stack([np.full(rows, of_batch), of_rows]))

    def row_count(self, steps: int) -> int:
        """Return the total number of rows in the first ``steps`` training batches."""
        return self._order.row_count(steps)

    def steps(self, tokens: int) -> int:
        """Return the smallest number of steps that train on at least ``tokens`` tokens."""
        epochs, left = divmod(tokens, self._input_tokens(self.samples.lengths))
        steps = epochs * len(self.batches)
        while left > 0:
            left -= self._input_tokens(self.batches.at(self._seed, steps).lengths)
            steps += 1
        return steps

    def _input_tokens(self, lengths: NDArray[np.int64]) -> int:
        """Return how many tokens the trunk reads for rows of these lengths, at least one each;
        causal models read one start token more."""
        return int(np.maximum(lengths + self.objective.causal, 1).sum())

    def queries(self, ranks: Ranks = ALONE) -> Iterator[TrainingBatch]:
        """Yield batches for calibrating the head, with numbers predicted as in evaluation.

        If the rows have targets, only the targets are predicted. Otherwise, a causal model predicts
        every number, and any other model predicts one number per row, from all other numbers. With
        several ranks, each rank yields a part of the batches.
        """
        for batch, first in self._sampled_batches(ranks):
            chosen = batch.is_target
            if not len(self.samples.targets):
                chosen = np.ones_like(chosen)
            if self.objective.causal:
                yield autoregressive_batch(batch, chosen)
                continue
            if not len(self.samples.targets):
                order = generator(0, "asked", first).permutation(len(batch.number))
                _, first_of_row = np.unique(batch.number_row[order], return_index=True)
                chosen = np.isin(np.arange(len(chosen)), order[first_of_row])
            yield masked_batch(batch, batch.number_tokens(chosen))

    def validation_batches(self) -> Iterator[TrainingBatch]:
        """Yield the validation batches.

        Every call yields the same rows and masks, regardless of the seed.
        """
        for batch, first in self._sampled_batches(ALONE):
            yield self.objective.example(batch, generator(0, "looked at", first))

    @property
    def validation_batch_count(self) -> int:
        """Number of batches that :meth:`validation_batches` yields."""
        return -(-min(_VALIDATION_ROWS, len(self._usable)) // self._batch)

    def answers(self) -> ExactAnswers | None:
        """Return the answers that are checked for exact matches when a causal model is validated.

        The result is None for other models, for classification, and if exact matches are
        impossible.
        """
        if not self.objective.causal or self.classes:
            return None
        return ExactAnswers.of(self.samples, self.batches, self._codec, self._batch)

    def _sampled_batches(self, ranks: Ranks) -> Iterator[tuple[Batch, int]]:
        draws = generator(0, "looked at").permutation(len(self._usable))[:_VALIDATION_ROWS]
        rows = self._usable[draws]
        rows = rows[np.argsort(self.samples.lengths[rows], kind="stable")]
        for first in range(0, len(rows), self._batch)[ranks.rank :: ranks.count]:
            yield self.batches.of(rows[first : first + self._batch]), first
