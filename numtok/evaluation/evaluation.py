"""What every evaluation goes through: predictions of numbers, labels, texts or tables to a report.

Each kind says what its predictions are, what they are set beside and what a reader must know of
them (:class:`Evaluator`); how that becomes a report is the same for all (:func:`report_of`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import read_split
from numtok.evaluation.devices import Devices, Done, Note
from numtok.evaluation.report_files import TrainMeans, repeated_ids
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, baseline_figures, score
from numtok.metrics.base import METRICS, Metric
from numtok.reports import (
    QUANTILES,
    SLOT,
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
    """The metrics of a kind of report, by their specs.

    overall
        Over all that is predicted.
    in_groups
        For each target and group.
    of_baselines
        Of what needs no model.
    """

    overall: tuple[str, ...]
    in_groups: tuple[str, ...]
    of_baselines: tuple[str, ...]

    @cached_property
    def usual(self) -> list[Metric]:
        """Those of every report, over all."""
        return list(map(METRICS.build, self.overall))


class Subject(NamedTuple):
    """What a report is of."""

    model: Artifact
    data: Artifact
    split: str


class Evaluator(Protocol):
    """A model on the rows of a split, in memory."""

    metrics: ClassVar[ReportMetrics]

    @property
    def train_means(self) -> TrainMeans:
        """What an invalid prediction counts as."""

    def predictions(self, progress: Done, note: Note) -> "pa.Table":
        """The rows of predictions.parquet; DataError where there are none."""

    def baselines(self, scores: Scores, progress: Progress) -> Iterable[BaselineAnswers]:
        """What needs no model, in the order of the answers that are scored."""

    def facts(self, table: "pa.Table", scores: Scores) -> Mapping[str, Any]:
        """Fields of :class:`Report` that depend on the kind of model and on what is predicted."""

    def notes(
        self, table: "pa.Table", scores: Scores, baselines: Mapping[str, Figures]
    ) -> Iterator[str]:
        """What a reader must know."""


def report_of(
    of: Subject, evaluator: Evaluator, table: "pa.Table", more: Sequence[Metric], progress: Progress
) -> Report:
    """Every figure of the report, from the rows of predictions.parquet; ``more`` are metrics that
    were asked for. Raises DataError where there is nothing to score."""
    kinds, means = evaluator.metrics, evaluator.train_means
    scores = score(
        table,
        means,
        usual=kinds.usual,
        few=list(map(METRICS.build, kinds.in_groups)),
        more=more,
        ref=of.model.ref,
        progress=progress,
    )
    beside = [
        metric
        for metric in map(METRICS.build, kinds.of_baselines)
        if SLOT not in metric.needs or metric.missing(scores.answers) is None
    ]
    baselines, target_baselines = baseline_figures(
        [*beside, *more], scores, evaluator.baselines(scores, progress)
    )
    fields: dict[str, Any] = {"off_grammar": None, **evaluator.facts(table, scores)}
    return Report(
        model=of.model.ref,
        name=of.model.name,
        data=of.data.ref,
        split=of.split,
        **fields,
        train_mean=means.overall,
        metrics=scores.metrics,
        valid_metrics=scores.valid_metrics,
        by_target=scores.by_target,
        groups=scores.groups,
        slots=scores.slots,
        baselines=baselines,
        notes=[*evaluator.notes(table, scores, baselines), *repeated_ids(table)],
        target_means=dict(means.of_target),
        target_baselines=target_baselines,
        training_data=of.model.made_from(ENCODED, TABLE).where,
    )


def quantile_columns(quantiles: Floats) -> dict[str, Floats]:
    """The columns of quantiles [n, levels], of the levels ``QUANTILES``, by name."""
    return {quantile_column(level): quantiles[:, k] for k, level in enumerate(QUANTILES)}


def predictions_table(columns: Mapping[str, Any], schema: "pa.Schema") -> "pa.Table":
    """The rows of predictions.parquet: NumPy's arrays, in which NaN and None are null, or those of
    Arrow; a column that is not there is null throughout, and one without a place is left out."""
    count = len(columns["id"])
    return pa.table(
        [_column(columns.get(field.name), field.type, count) for field in schema], schema=schema
    )


def _column(values: Any, type: "pa.DataType", count: int) -> "pa.Array[Any]":
    if values is None:
        return pa.nulls(count, type)
    if isinstance(values, np.ndarray):
        if values.dtype == np.float64:
            return pa.array(values, mask=np.isnan(values)).cast(type)
        values = values.tolist() if values.dtype == object else values
    return pa.array(values).cast(type)


@dataclass(frozen=True, kw_only=True)
class EvaluatedSplit:
    """One model on rows of one split, in memory, and the devices that predict them."""

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
        skip_long: bool = False,
    ) -> "EvaluatedSplit":
        """Draw ``rows`` of the split by their ids; None takes all. Rows longer than the model reads
        are skipped if ``skip_long`` is set; DataError if it is not, or if all are longer."""
        whole = read_split(encoded, split)
        drawn = whole.drawn(rows)
        fits = whole.lengths[drawn] <= row_limit(loaded.model)
        kept = drawn[fits] if skip_long and fits.any() else drawn
        one = cls(
            loaded=loaded,
            encoded=encoded,
            split=split,
            rows=kept,
            samples=whole.take(kept),
            skipped=len(drawn) - len(kept),
            devices=devices,
        )
        check_reads(loaded, one.samples, str(one), ", or skip such rows: --on-error skip")
        return one

    def notes(self, scores: Scores) -> Iterator[str]:
        """Yield the notes of every report of texts: on skipped rows, and those of scoring."""
        if self.skipped:
            rows = "1 row is" if self.skipped == 1 else f"{self.skipped:,} rows are"
            limit = row_limit(self.loaded.model)
            yield f"{rows} longer than the {limit:,} tokens that the model reads, and skipped."
        yield from scores.notes

    def __str__(self) -> str:
        return f"split {self.split!r} of {self.encoded.ref}"

    def table(
        self, columns: Mapping[str, Any], measures: Measures, rows: "pa.Array[Any] | None" = None
    ) -> pa.Table:
        """The rows of predictions.parquet: columns of their own, and of the row of data that each
        belongs to (``rows``; all for None) the id, its groups and its cluster."""
        samples = self.samples
        of_rows = {"id": samples.ids} | {
            GROUP + name: column for name, column in samples.groups.items()
        }
        if samples.clusters is not None:
            of_rows[CLUSTER] = samples.clusters
        if rows is not None:
            of_rows = {name: column.take(rows) for name, column in of_rows.items()}
        clusters = samples.clusters is not None
        schema = predictions_schema(list(samples.groups), measures=measures, clusters=clusters)
        return predictions_table({**of_rows, **columns}, schema)

    def facts(self, lengths: NDArray[np.int32]) -> dict[str, Any]:
        """Fields of every report of texts. ``lengths`` are the tokens of each of its numbers."""
        loaded = self.loaded
        return {
            "scheme": title_of(loaded.codec.scheme),
            "configuration": loaded.trained.configuration,
            "seed": loaded.trained.seed,
            "rows": len(self.samples),
            "costs": loaded.costs(lengths),
        }
