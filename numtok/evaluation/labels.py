"""A model of labels on one split: predictions, and the report of them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_data, learnt_values
from numtok.errors import DataError
from numtok.evaluation.devices import BatchSizer, Done, Note
from numtok.evaluation.evaluation import EvaluatedSplit, ReportMetrics
from numtok.evaluation.label_baselines import FITTED_ON, Guesses, RowWords, label_baselines
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores
from numtok.metrics.base import Predictions
from numtok.models.batches import Batches
from numtok.models.training_batch import row_end_batch
from numtok.reports import FEW_CLASSES, Confused, Labels, Measures
from numtok.store.artifact import Artifact, Find
from numtok.stored_json import Natural
from numtok.training.model_files import AskedModel


class _ModelCounts(msgspec.Struct):
    """Of a model."""

    rows: Natural


_METRICS = ("accuracy", "macro-f1", "label-nll")
_IN_GROUPS = ("accuracy", "macro-f1")


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Reads the labels of rows, at most ``batch`` at a time."""

    loaded: AskedModel
    samples: EncodedSplit
    batch: int

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes."""
        return LabelReader, (self.loaded, self.samples, self.batch)

    @cached_property
    def room(self) -> BatchSizer:
        """How many go together."""
        return BatchSizer.of(self.loaded.model, self.batch)

    @cached_property
    def lengths(self) -> Ints:
        """int64[rows]: the tokens of each."""
        return self.samples.lengths

    @cached_property
    def _batches(self) -> Batches:
        return Batches(self.samples, learnt_values(self.samples, self.loaded.codec), self.batch)

    @torch.no_grad()
    def answers(self, rows: Ints) -> NDArray[np.float32]:
        """The log-probabilities [k, classes] of the labels of rows, by their indices int64[k]."""
        model = self.loaded.model
        example = row_end_batch(self._batches.of(rows), model.objective.causal)
        log_BC: NDArray[np.float32] = model.class_log_probabilities(example).cpu().numpy()
        return log_BC

    def forget(self) -> None:
        """Nothing is kept from batch to batch."""


@dataclass(frozen=True)
class LabelOptions:
    """How labels are predicted: at most ``batch`` rows at a time."""

    measures: ClassVar[Measures] = "labels"
    batch: int


@dataclass(frozen=True)
class LabelEvaluation:
    """Of a model of labels."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _METRICS)
    train_means: ClassVar[TrainMeans] = TrainMeans(None)
    evaluated: EvaluatedSplit
    learnt: Artifact | None  # what the model learnt from
    batch: int

    @classmethod
    def of(cls, evaluated: EvaluatedSplit, find: Find, batch: int) -> "LabelEvaluation":
        """Raises DataError where no row has a label."""
        if evaluated.samples.labels.null_count == len(evaluated.samples):
            raise DataError(f"{evaluated} has no row with a label; evaluate on rows with labels")
        learnt = learnt_data(evaluated.loaded.artifact, evaluated.encoded, find)
        return cls(evaluated, learnt, batch)

    @property
    def samples(self) -> EncodedSplit:
        """The rows of the split, encoded, those without a label among them."""
        return self.evaluated.samples

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that the model tells apart, in the order of its outputs."""
        return self.evaluated.loaded.model.settings.classes

    def predictions(self, progress: Done, note: Note) -> "pa.Table":
        """The rows of predictions.parquet."""
        samples, done = self.samples, 0
        place = samples.class_of(self.classes)
        best, log_true = np.empty(len(samples), np.int64), np.empty(len(samples))
        reader = LabelReader(self.evaluated.loaded, samples, self.batch)
        for rows, log_BC in self.evaluated.devices.batches(reader, note):
            best[rows], log_true[rows] = Guesses.of(log_BC, place[rows])
            done += len(rows)
            progress(done, len(samples))
        columns = {
            "label": samples.labels,
            "prediction": pa.array(self.classes, pa.string()).take(pa.array(best)),
            "log_probability": log_true,
        }
        return self.evaluated.table(columns, "labels")

    def facts(self, table: "pa.Table", scores: Scores) -> dict[str, Any]:
        """As of :class:`Evaluator`, with the confusion of labels; every row gets one, so none is
        invalid."""
        confusion, complete = _confusion(scores.answers, self.classes)
        return self.evaluated.facts(self.samples.number_length) | {
            "decoding": {"label": "read at the last real place"},
            "numbers": len(scores.answers.truth),
            "invalid": 0.0,
            "labels": Labels(
                classes=list(self.classes),
                unseen=len(self._unseen()),
                unlabelled=scores.left_out,
                confusion=confusion,
                complete=complete,
            ),
        }

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Those of :func:`label_baselines`; none where what the model learnt from is not at
        hand."""
        if self.learnt is not None:
            labelled = np.flatnonzero(self.samples.labels.is_valid().to_numpy(False))
            asked = RowWords(
                self.evaluated.encoded, self.evaluated.split, self.evaluated.rows[labelled]
            )
            yield from label_baselines(scores.answers, asked, self.learnt, self.classes, progress)

    def _unseen(self) -> list[str]:
        """The labels of rows that training never saw, one a row."""
        strange = self.samples.class_of(self.classes) < 0
        return list(self.samples.labels.filter(pa.array(strange)).drop_null().to_pylist())

    def notes(self, table: "pa.Table", scores: Scores, baselines: Collection[str]) -> Iterator[str]:
        """Rows without a label or with one that training never saw, and what is said of
        baselines."""
        yield from self.evaluated.notes(scores)
        if lacking := self.samples.labels.null_count:
            yield f"Not scored: {_rows(lacking)} without a label."
        if unseen := self._unseen():
            told = ", ".join(repr(label) for label, _ in Counter(unseen).most_common(FEW_CLASSES))
            yield (
                f"Wrong in every figure, but left out of label-nll: {_rows(len(unseen))} with a "
                f"label that training never saw ({told})."
            )
        if self.learnt is None:
            yield "What the model learnt from is not at hand: no baselines."
        if "tfidf" in baselines:
            rows = self.evaluated.loaded.artifact.counts(_ModelCounts).rows
            yield (
                "tfidf is logistic regression on words and numbers, fitted to "
                f"{min(rows, FITTED_ON):,} of {rows:,} rows of the train split."
            )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _confusion(answers: Predictions, classes: Sequence[str]) -> tuple[list[Confused], bool]:
    """Pairs of truth and prediction with how many rows have them, and whether these are all."""
    pairs = Counter(zip(answers.truth_literal or (), answers.prediction_literal or (), strict=True))
    known = {label: index for index, label in enumerate(classes)}

    def place(label: str | None) -> tuple[int, str]:
        return known.get(str(label), len(known)), str(label)

    found = sorted(pairs, key=lambda pair: (place(pair[0]), place(pair[1])))
    complete = len({truth for truth, _ in pairs} | known.keys()) <= FEW_CLASSES
    if not complete:
        wrong = [pair for pair in found if pair[0] != pair[1]]
        found = sorted(wrong, key=lambda pair: -pairs[pair])[:FEW_CLASSES]
    told = [Confused(truth, str(other), pairs[truth, other]) for truth, other in found]
    return told, complete
