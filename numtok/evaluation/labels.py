"""Evaluation of models that predict labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from numtok.evaluation.evaluation import EvaluatedSplit, ReportMetrics, TextEvaluation
from numtok.evaluation.label_baselines import FITTED_ON, Guesses, RowWords, label_baselines
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores
from numtok.metrics.base import Predictions
from numtok.models.batches import Batches
from numtok.models.training_batch import row_end_batch
from numtok.names import counted
from numtok.reports import FEW_CLASSES, Confused, Figures, Labels, Measures
from numtok.store.artifact import Artifact, Find
from numtok.stored_json import Natural
from numtok.training.model_files import AskedModel


class _ModelCounts(msgspec.Struct):
    """Counts in the manifest of a model that this module uses."""

    rows: Natural


_METRICS = ("accuracy", "macro-f1", "label-nll")
_IN_GROUPS = ("accuracy", "macro-f1")


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Predictor that outputs label probabilities for rows (see ``devices.BatchReader``). It reads
    at most ``batch`` rows at a time."""

    loaded: AskedModel
    samples: EncodedSplit
    batch: int

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the constructor's arguments to worker processes."""
        return LabelReader, (self.loaded, self.samples, self.batch)

    @cached_property
    def room(self) -> BatchSizer:
        """Limits on the batch size."""
        return BatchSizer.of(self.loaded.model, self.batch)

    @cached_property
    def lengths(self) -> Ints:
        """Number of tokens of each row, int64[rows]."""
        return self.samples.lengths

    @cached_property
    def _batches(self) -> Batches:
        return Batches(self.samples, learnt_values(self.samples, self.loaded.codec), self.batch)

    @torch.no_grad()
    def answers(self, rows: Ints) -> NDArray[np.float32]:
        """Return log probabilities [k, classes] for the rows with the indices ``rows``,
        int64[k]."""
        model = self.loaded.model
        example = row_end_batch(self._batches.of(rows), model.objective.causal)
        log_BC: NDArray[np.float32] = model.class_log_probabilities(example).cpu().numpy()
        return log_BC

    def forget(self) -> None:
        """Do nothing: no memory is kept between batches."""


@dataclass(frozen=True)
class LabelOptions:
    """Options for models that predict labels. ``batch`` is the maximum number of rows per forward
    pass."""

    measures: ClassVar[Measures] = "labels"
    batch: int


@dataclass(frozen=True)
class LabelEvaluation(TextEvaluation):
    """Evaluation of a model that predicts labels."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _METRICS)
    training_data: Artifact | None
    batch: int

    @classmethod
    def of(cls, evaluated: EvaluatedSplit, find: Find, batch: int) -> "LabelEvaluation":
        """Build the evaluation for a split. ``find`` looks up the data that the model was trained
        on.

        Raises DataError if no row has a label.
        """
        if evaluated.samples.labels.null_count == len(evaluated.samples):
            raise DataError(f"no row in {evaluated} has a label. Evaluate on rows with labels")
        training_data = learnt_data(evaluated.loaded.artifact, evaluated.encoded, find)
        return cls(evaluated, training_data, batch)

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels that the model predicts, in the order of its outputs."""
        return self.loaded.model.settings.classes

    def predictions(self, progress: Done, note: Note) -> pa.Table:
        """Predict the label of every row, and return the table that is stored in
        predictions.parquet."""
        samples, done = self.samples, 0
        true_class = samples.class_of(self.classes)
        best, log_true = np.empty(len(samples), np.int64), np.empty(len(samples))
        reader = LabelReader(self.loaded, samples, self.batch)
        for rows, log_BC in self.evaluated.devices.batches(reader, note):
            best[rows], log_true[rows] = Guesses.of(log_BC, true_class[rows])
            done += len(rows)
            progress(done, len(samples))
        columns = {
            "label": samples.labels,
            "prediction": pa.array(self.classes, pa.string()).take(pa.array(best)),
            "log_probability": log_true,
        }
        return self.evaluated.table(columns, "labels")

    def facts(self, table: pa.Table, scores: Scores) -> dict[str, Any]:
        """Return the fields of :class:`Report` that are specific to labels, keyed by name.

        ``labels`` contains the confusion matrix. ``invalid`` is 0, because every row is assigned a
        label.
        """
        confusion, complete = _confusion(scores.answers, self.classes)
        return self.evaluated.facts(self.samples.number_length) | {
            "decoding": {"label": "read at the last token"},
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
        """Yield the predictions of :func:`label_baselines`, or nothing if the training data are not
        available."""
        if self.training_data is not None:
            labelled = np.flatnonzero(self.samples.labels.is_valid().to_numpy(False))
            queried = RowWords(
                self.evaluated.encoded, self.evaluated.split, self.evaluated.rows[labelled]
            )
            yield from label_baselines(
                scores.answers, queried, self.training_data, self.classes, progress
            )

    def _unseen(self) -> list[str]:
        """Return the labels that are not in the train split, once for each row that has one."""
        strange = self.samples.class_of(self.classes) < 0
        return list(self.samples.labels.filter(pa.array(strange)).drop_null().to_pylist())

    def notes(self, table: pa.Table, scores: Scores) -> Iterator[str]:
        """Yield the report's notes about rows without a label and about labels that are not in the
        train split."""
        yield from self.evaluated.notes(scores)
        if lacking := self.samples.labels.null_count:
            yield f"Not scored: {counted(lacking, 'row')} without a label."
        if unseen := self._unseen():
            listed = ", ".join(repr(label) for label, _ in Counter(unseen).most_common(FEW_CLASSES))
            yield (
                f"{counted(len(unseen), 'row')} with a label that is not in the train split "
                f"({listed}): counted as wrong, and excluded from label-nll."
            )

    def baseline_notes(self, scores: Scores, baselines: Mapping[str, Figures]) -> Iterator[str]:
        """Yield the report's notes about missing baselines and about the data of fitted ones."""
        if self.training_data is None:
            yield "The training data are not available, so baselines are missing."
        if "tfidf" in baselines:
            rows = self.loaded.artifact.counts(_ModelCounts).rows
            yield (
                "The tfidf baseline is logistic regression on words and numbers, fitted to "
                f"{min(rows, FITTED_ON):,} of {rows:,} rows of the train split."
            )


def _confusion(answers: Predictions, classes: Sequence[str]) -> tuple[list[Confused], bool]:
    """Return the number of rows for each pair of true and predicted label, and whether all pairs
    are listed."""
    pairs = Counter(zip(answers.truth_literal or (), answers.prediction_literal or (), strict=True))
    class_indices = {label: index for index, label in enumerate(classes)}

    def order(label: str | None) -> tuple[int, str]:
        return class_indices.get(str(label), len(class_indices)), str(label)

    listed = sorted(pairs, key=lambda pair: (order(pair[0]), order(pair[1])))
    complete = len({truth for truth, _ in pairs} | class_indices.keys()) <= FEW_CLASSES
    if not complete:
        wrong = [pair for pair in listed if pair[0] != pair[1]]
        listed = sorted(wrong, key=lambda pair: -pairs[pair])[:FEW_CLASSES]
    confusion = [Confused(truth, str(other), pairs[truth, other]) for truth, other in listed]
    return confusion, complete
