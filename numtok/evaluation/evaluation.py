"""Steps shared by the evaluations for numbers, labels, answers and tables.

Each kind of evaluation implements :class:`Evaluator`, which provides predictions, baselines and
notes. :func:`report_of` builds a report from them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import read_split
from numtok.evaluation.devices import Devices, Done, Note
from numtok.evaluation.intervals import CalibrationReport, baseline_columns, with_values
from numtok.evaluation.prediction_table import TrainMeans, repeated_ids, scorable
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, baseline_scores, score
from numtok.metrics.base import METRICS, Metric
from numtok.names import counted
from numtok.reports import (
    QUANTILES,
    Figures,
    Measures,
    Report,
    predictions_schema,
    quantile_column,
)
from numtok.row import CLUSTER, GROUP
from numtok.store.artifact import ENCODED, TABLE, Artifact
from numtok.training.model_files import LoadedModel, check_reads, row_limit


@dataclass(frozen=True)
class ReportMetrics:
    """Specs of the default metrics for one kind of report.

    overall
        Metrics over all predictions.
    in_groups
        Metrics computed separately for each target and group.
    of_baselines
        Metrics of the baselines.
    """

    overall: tuple[str, ...]
    in_groups: tuple[str, ...]
    of_baselines: tuple[str, ...]

    @cached_property
    def defaults(self) -> list[Metric]:
        """The metrics in ``overall``, built from their specs."""
        return list(map(METRICS.build, self.overall))


class Evaluator(Protocol):
    """Base of evaluations, which compute the contents of a report from a loaded model and the rows
    of a split.

    There is one implementation each for numbers, labels, answers and tables.
    """

    metrics: ClassVar[ReportMetrics]

    @property
    def train_means(self) -> TrainMeans:
        """Means of the training targets, which replace invalid predictions."""
        return TrainMeans(None)

    def predictions(self, progress: Done, note: Note) -> pa.Table:
        """Compute all predictions, and return the table that is stored in predictions.parquet.
        Raises DataError if there is nothing to predict."""

    def baselines(self, scores: Scores, progress: Progress) -> Iterable[BaselineAnswers]:
        """Return the predictions of each baseline, in the order of ``scores.answers``."""

    def facts(self, table: pa.Table, scores: Scores) -> Mapping[str, Any]:
        """Return the fields of :class:`Report` that depend on the kind of model and prediction,
        keyed by name."""

    def notes(self, table: pa.Table, scores: Scores) -> Iterator[str]:
        """Yield the notes of the report: caveats for readers, one sentence each."""

    def baseline_notes(self, scores: Scores, baselines: Mapping[str, Figures]) -> Iterator[str]:
        """Yield the notes on baselines and on those that are missing, one sentence each."""
        yield from ()


def report_of(
    evaluator: Evaluator,
    table: pa.Table,
    *,
    model: Artifact,
    data: Artifact,
    split: str,
    more: Sequence[Metric],
    progress: Progress,
    calibration: CalibrationReport | str | None,
    with_baselines: bool,
) -> tuple[Report, "pa.Table"]:
    """Build the report about a model on a split from ``table``, the predictions of ``evaluator``.
    Also return the table that is stored in predictions.parquet, which has the intervals and the
    predictions of baselines as further columns.

    ``more`` contains the metrics added by ``--metric``. ``calibration`` is the report that
    calibrates intervals, the reason why it is missing, or None if the report has no intervals.
    If ``with_baselines`` is False, no baseline is fitted.
    Raises DataError if there is nothing to score.
    """
    kinds, means = evaluator.metrics, evaluator.train_means
    calibrated = calibration if isinstance(calibration, CalibrationReport) else None
    if calibrated is not None:
        table = calibrated.with_intervals(table, means, model.ref)
    scores = score(
        table,
        means,
        defaults=kinds.defaults,
        few=list(map(METRICS.build, kinds.in_groups)),
        more=more,
        ref=model.ref,
        progress=progress,
    )
    answers = list(evaluator.baselines(scores, progress)) if with_baselines else []
    columns = baseline_columns(answers)
    if calibrated is not None:
        answers = list(calibrated.of_baselines(answers, scorable(table)))
    of_baselines = baseline_scores(
        list(map(METRICS.build, kinds.of_baselines)), more, scores=scores, baselines=answers
    )
    fields: dict[str, Any] = {"off_grammar": None, **evaluator.facts(table, scores)}
    notes = [*evaluator.notes(table, scores), *repeated_ids(table)]
    if with_baselines:
        notes += evaluator.baseline_notes(scores, of_baselines.baselines)
    if calibrated is not None:
        notes += calibrated.notes()
    elif calibration is not None:
        notes.append(f"No prediction intervals: {calibration}.")
    report = Report(
        model=model.ref,
        name=model.name,
        data=data.ref,
        split=split,
        **fields,
        train_mean=means.overall,
        metrics=scores.metrics,
        valid_metrics=scores.valid_metrics,
        by_target=scores.by_target,
        groups=scores.groups,
        fields=scores.fields,
        notes=notes,
        target_means=dict(means.of_target),
        **of_baselines._asdict(),
        training_data=model.made_from(ENCODED, TABLE).where,
    )
    return report, with_values(table, columns) if columns else table


def quantile_columns(quantiles: Floats) -> dict[str, Floats]:
    """Return quantiles [n, levels] at the levels ``QUANTILES`` as columns of predictions.parquet,
    keyed by column name."""
    return {quantile_column(level): quantiles[:, k] for k, level in enumerate(QUANTILES)}


def predictions_table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Build a table with the given schema from columns, which are NumPy or Arrow arrays keyed by
    name.

    In NumPy arrays, NaN and None become null. Columns of the schema that are missing from
    ``columns`` are filled with null. Columns that are not in the schema are dropped.
    """
    count = len(columns["id"])
    return pa.table(
        [_column(columns.get(field.name), field.type, count) for field in schema], schema=schema
    )


def _column(values: Any, type: pa.DataType, count: int) -> "pa.Array[Any]":
    if values is None:
        return pa.nulls(count, type)
    if isinstance(values, np.ndarray):
        if values.dtype == np.float64:
            return pa.array(values, mask=np.isnan(values)).cast(type)
        values = values.tolist() if values.dtype == object else values
    return pa.array(values).cast(type)


@dataclass(frozen=True, kw_only=True)
class EvaluatedSplit:
    """Rows of a split, in memory, with the loaded model and the devices on which it runs."""

    loaded: LoadedModel
    encoded: Artifact
    split: str
    rows: Ints  # indices in the split, ascending
    samples: EncodedSplit  # these rows
    skipped: int  # rows longer than the model reads
    devices: Devices

    @classmethod
    def of(
        cls,
        loaded: LoadedModel,
        encoded: Artifact,
        split: str,
        *,
        rows: int | None,
        devices: Devices,
        skip_long: bool,
    ) -> "EvaluatedSplit":
        """Read ``rows`` rows of a split, sampled by ID, or all rows if ``rows`` is None.

        Rows that are too long for the model are skipped if ``skip_long`` is set. Raises DataError
        if all rows are too long or, unless ``skip_long`` is set, if any row is.
        """
        whole = read_split(encoded, split)
        drawn = whole.drawn(rows)
        fits = whole.lengths[drawn] <= row_limit(loaded.model)
        kept = drawn[fits] if skip_long and fits.any() else drawn
        evaluated = cls(
            loaded=loaded,
            encoded=encoded,
            split=split,
            rows=kept,
            samples=whole.take(kept),
            skipped=len(drawn) - len(kept),
            devices=devices,
        )
        check_reads(
            loaded, evaluated.samples, str(evaluated), ", or skip such rows: --on-error skip"
        )
        return evaluated

    def notes(self, scores: Scores) -> Iterator[str]:
        """Yield the notes that all reports on text models contain: one about skipped rows, and the
        notes from scoring."""
        if self.skipped:
            rows, limit = counted(self.skipped, "row"), row_limit(self.loaded.model)
            yield f"Skipped {rows} longer than the model's context of {limit:,} tokens."
        yield from scores.notes

    def __str__(self) -> str:
        return f"split {self.split!r} of {self.encoded.ref}"

    def table(
        self, columns: Mapping[str, Any], measures: Measures, rows: "pa.Array[Any] | None" = None
    ) -> pa.Table:
        """Build the table that is stored in predictions.parquet from ``columns``, arrays keyed by
        column name.

        The ID, groups and cluster of each prediction's data row are added as columns. ``rows``
        contains the index of the data row for each prediction. If ``rows`` is None, there is one
        prediction per row.
        """
        samples = self.samples
        row_columns = {"id": samples.ids} | {
            GROUP + name: column for name, column in samples.groups.items()
        }
        if samples.clusters is not None:
            row_columns[CLUSTER] = samples.clusters
        if rows is not None:
            row_columns = {name: column.take(rows) for name, column in row_columns.items()}
        clusters = samples.clusters is not None
        schema = predictions_schema(list(samples.groups), measures=measures, clusters=clusters)
        return predictions_table({**row_columns, **columns}, schema)

    def facts(self, lengths: NDArray[np.int32]) -> dict[str, Any]:
        """Return the fields shared by all reports on text models, keyed by name.

        ``lengths``, int32[n], contains the number of tokens of each reported number. The costs
        include the mean of these lengths.
        """
        loaded = self.loaded
        return {
            "scheme": title_of(loaded.codec.scheme),
            "configuration": loaded.trained.configuration,
            "seed": loaded.trained.seed,
            "rows": len(self.samples),
            "costs": loaded.costs(lengths),
        }


@dataclass(frozen=True)
class TextEvaluation(Evaluator):
    """Base of the evaluations of text models."""

    evaluated: EvaluatedSplit

    @property
    def loaded(self) -> LoadedModel:
        """Loaded model, with its codec."""
        return self.evaluated.loaded

    @property
    def samples(self) -> EncodedSplit:
        """Encoded rows of the split, including those that are not predicted."""
        return self.evaluated.samples
