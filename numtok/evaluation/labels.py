"""A model of labels on one split: predictions, and the report of them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from numtok.data.reading.arrow import nullable
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_data, learnt_values
from numtok.errors import DataError
from numtok.evaluation.batch_size import BatchSizer
from numtok.evaluation.evaluated_split import EvaluatedSplit
from numtok.evaluation.label_baselines import FITTED_ON, Guesses, RowWords, label_baselines
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import Progress, baseline_figures, score
from numtok.metrics.base import METRICS, Metric, Predictions
from numtok.models.batches import Batches
from numtok.models.objectives.base import row_end_batch
from numtok.records import Natural
from numtok.reports import (
    FEW_CLASSES,
    Confused,
    Labels,
    Report,
    label_predictions_schema,
)
from numtok.store.artifact import Artifact, Find
from numtok.training.model_files import LoadedModel


class _ModelCounts(msgspec.Struct):
    """Of a model."""

    rows: Natural


_METRICS = ("accuracy", "macro-f1", "label-nll")
_IN_GROUPS = ("accuracy", "macro-f1")
_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}  # of a batch at most: more leave a core's cache


@cache
def label_metrics() -> list[Metric]:
    """The metrics of every report of labels."""
    return [METRICS.build(spec) for spec in _METRICS]


def log_probabilities(
    loaded: LoadedModel, samples: EncodedSplit, batch: int, note: Callable[[str], None]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Some rows at a time, and the log-probabilities [rows, classes] of their labels. Where memory
    is out, fewer are read at a time."""
    model = loaded.model
    batches = Batches(samples, learnt_values(samples, loaded.codec), batch)

    def labels(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        with torch.no_grad():
            example = row_end_batch(batches.of(rows), model.objective.causal)
            log_BC: NDArray[np.float32] = model.class_log_probabilities(example).cpu().numpy()
        return log_BC

    yield from BatchSizer.of(model, batch, _TOKENS).batches(samples.lengths, labels, note)


@dataclass(frozen=True)
class LabelEvaluation:
    """Of a model of labels. ``more`` are metrics that were asked for."""

    evaluated: EvaluatedSplit
    learnt: Artifact | None  # what the model learnt from
    batch: int
    more: Sequence[Metric]

    @classmethod
    def of(
        cls, evaluated: EvaluatedSplit, find: Find, batch: int, more: Sequence[Metric]
    ) -> "LabelEvaluation":
        """Raises DataError where no row has a label."""
        if evaluated.samples.labels.null_count == len(evaluated.samples):
            raise DataError(f"{evaluated} has no row with a label; evaluate on rows with labels")
        learnt = learnt_data(evaluated.loaded.artifact, evaluated.encoded, find)
        return cls(evaluated, learnt, batch, more)

    @property
    def samples(self) -> EncodedSplit:
        return self.evaluated.samples

    @property
    def classes(self) -> tuple[str, ...]:
        return self.evaluated.loaded.model.settings.classes

    def predictions(
        self, progress: Callable[[int, int], None], note: Callable[[str], None]
    ) -> "pa.Table":
        """The rows of predictions.parquet."""
        samples, done = self.samples, 0
        place = samples.class_of(self.classes)
        best, log_true = np.empty(len(samples), np.int64), np.empty(len(samples))
        for rows, log_BC in log_probabilities(self.evaluated.loaded, samples, self.batch, note):
            best[rows], log_true[rows] = Guesses.of(log_BC, place[rows])
            done += len(rows)
            progress(done, len(samples))
        return self._table(Guesses(best, log_true))

    def _table(self, guesses: Guesses) -> "pa.Table":
        columns = {
            "label": self.samples.labels,
            "prediction": pa.array(self.classes, pa.string()).take(pa.array(guesses.best)),
            "log_probability": nullable(guesses.log_true),
        }
        return self.evaluated.table(columns, label_predictions_schema)

    def report(self, table: "pa.Table", progress: Progress) -> Report:
        """Every figure of the report, from the rows of predictions.parquet."""
        few = list(map(METRICS.build, _IN_GROUPS))
        ref = self.evaluated.loaded.artifact.ref
        scores = score(table, label_metrics(), few, self.more, TrainMeans(None), ref, progress)
        every = [*label_metrics(), *self.more]
        baselines, _ = baseline_figures(every, scores, self._baselines(scores.answers, progress))
        unseen = self._unseen()
        confusion, complete = _confusion(scores.answers, self.classes)
        return self.evaluated.report(
            scores,
            baselines,
            self.samples.number_length,
            self._notes(baselines, unseen),
            decoding={"label": "read at the last real place"},
            numbers=len(scores.answers.truth),
            invalid=0.0,
            labels=Labels(list(self.classes), len(unseen), scores.left_out, confusion, complete),
        )

    def _baselines(
        self, answers: Predictions, progress: Progress
    ) -> Iterator[tuple[str, Predictions]]:
        if self.learnt is not None:
            labelled = np.flatnonzero(self.samples.labels.is_valid().to_numpy(False))
            asked = RowWords(self.evaluated.encoded, self.evaluated.split, labelled)
            yield from label_baselines(answers, asked, self.learnt, self.classes, progress)

    def _unseen(self) -> list[str]:
        """The labels of rows that training never saw, one a row."""
        strange = self.samples.class_of(self.classes) < 0
        return list(self.samples.labels.filter(pa.array(strange)).drop_null().to_pylist())

    def _notes(self, baselines: Collection[str], unseen: Sequence[str]) -> Iterator[str]:
        if lacking := self.samples.labels.null_count:
            yield f"Not scored: {_rows(lacking)} without a label."
        if unseen:
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
