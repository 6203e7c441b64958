"""Reads and writes report artifacts: the report, its timing and its predictions.

Predictions are sorted by ID, target and position (labels and answers by ID) when they are read.
Predictions for the same test set are therefore in the same order for every scheme and any division
into shards.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from numtok import files
from numtok.arrays import Floats, Ints
from numtok.encoding.dataset import clustered
from numtok.errors import DataError, UsageError, unknown
from numtok.metrics.base import METRICS, Metric, Predictions
from numtok.numerals.policy import NUMERAL
from numtok.registry import spec_of
from numtok.reports import (
    BASELINE,
    FIELD,
    PREDICTIONS_FILE,
    QUANTILES,
    REPORT_FILE,
    SCHEMA,
    Measures,
    Report,
    predictions_schema,
    quantile_column,
)
from numtok.row import CLUSTER, GROUP, in_order
from numtok.setting_names import note_renamed
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, check_schema, damaged, read_columns
from numtok.store.draft import Draft
from numtok.stored_json import StoredJson

TARGET = "target"  # column by which predictions can be grouped
LABEL = "label"  # column that only predictions of labels have
ANSWER = "answer"  # column that only predictions of answers have
FOLD = "fold"  # name of the group that holds the folds of a table
_FEW_CLUSTERS = 20  # with fewer, bootstrap percentiles cover less than their nominal level
_TRUTH, _PREDICTION = ("truth_literal", "truth"), ["prediction_literal", "prediction"]
_ALWAYS: dict[Measures, tuple[str, ...]] = {  # columns without nulls
    "numbers": ("id", TARGET, "position", *_TRUTH, "valid"),
    "labels": ("id", "prediction"),
    "answers": ("id", ANSWER, "prediction", "ended"),
}
#: Numeric columns that are fields of ``Predictions``; null if unknown.
_MORE = (
    "pit", "log_density_tailed", "log_interval", "token_nll", "log_range", "field_median",
    "interval_low", "interval_high",
)  # fmt: skip
_KEY = ("id", TARGET, "position")  # only the ID for labels and answers


class Timing(msgspec.Struct, frozen=True):
    """Wall-clock times recorded with a report, in seconds. A time that was not measured is None."""

    train_seconds: float | None = None
    eval_seconds: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """Report and timing that were read from a report artifact."""

    artifact: Artifact
    report: Report
    timing: Timing

    @property
    def ref(self) -> str:
        """REF of the report, ``name@version``."""
        return self.artifact.ref


def write_predictions(draft: Draft, table: "pa.Table") -> None:
    """Write predictions.parquet to the draft of a report artifact. ``table`` has the schema
    ``reports.predictions_schema``."""
    with files.Sink(draft.path / PREDICTIONS_FILE) as sink:
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)


def repeated_ids(table: "pa.Table") -> Iterator[str]:
    """Yield a note if several predictions have the same ID, target and position (for labels and
    answers, the same ID)."""
    keys = table.select(_key(table))
    if lacking := keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows:
        yield (
            f"IDs are repeated ({lacking:,} duplicates), so `numtok compare` cannot pair the "
            "predictions. Give each row of the data a unique id."
        )


def publish(draft: Draft, model: Artifact, report: Report, timing: Mapping[str, float]) -> Artifact:
    """Write a report to the draft that already contains its predictions, and publish the draft.

    ``timing`` contains ``eval_seconds``, the time spent on predictions (excluding loading and
    scoring), and ``devices``, the number of devices.
    """
    _REPORT.write(draft.path, report)
    return draft.publish(
        {"rows": report.rows, report.measures: report.numbers},
        {"train_seconds": model.seconds, **timing},
    )


def read(artifact: Artifact) -> Evaluation:
    """Read a report and its timing. Raises StoreError if the report file is damaged or has a newer
    schema."""
    report, timing = artifact.read(_REPORT), artifact.timing(Timing)
    return Evaluation(artifact, report, timing)


_REPORT = StoredJson(name=REPORT_FILE, kind=Report, newest=SCHEMA)


@dataclass(frozen=True)
class TrainMeans:
    """Means of the training targets, which replace invalid predictions.

    overall
        Mean over all targets.
    of_target
        Mean of each target, keyed by name; empty if all targets have the same name.
    """

    overall: float | None
    of_target: Mapping[str, float] = field(default_factory=dict)

    def at(self, table: "pa.Table") -> "Floats":
        """Return the mean that applies to each prediction in ``table``, float64[n]; NaN if it is
        not known."""
        default = np.nan if self.overall is None else self.overall
        names = table.column(TARGET).to_pylist() if self.of_target else [""] * table.num_rows
        return np.array([self.of_target.get(name, default) for name in names], np.float64)


@dataclass(frozen=True, eq=False)
class ReportPredictions:
    """The ``n`` predictions of a report that can be scored, sorted by ID, target and position."""

    ref: str
    table: "pa.Table"  # columns of reports.predictions_schema, [n]
    answers: Predictions

    @classmethod
    def read(cls, evaluation: Evaluation) -> "ReportPredictions":
        """Read the predictions of a report.

        Raises StoreError if the file of predictions is damaged, and DataError if two predictions
        have the same ID, target and position.
        """
        table = _sorted_predictions(evaluation)
        keys = _keys(table)
        for key, following in pairwise(keys):
            if key == following:
                raise DataError(
                    f"{evaluation.ref} has {_key_text(key)} twice, so its predictions cannot be "
                    "paired. Give each row of the data a unique id and evaluate again"
                )
        return cls._of(evaluation, table)

    @classmethod
    def unpaired(cls, evaluation: Evaluation) -> "ReportPredictions":
        """Read the predictions of a report, which may repeat IDs. Raises StoreError if the file of
        predictions is damaged."""
        return cls._of(evaluation, _sorted_predictions(evaluation))

    @classmethod
    def _of(cls, evaluation: Evaluation, table: "pa.Table") -> "ReportPredictions":
        report, kept = evaluation.report, scorable(table)
        means = TrainMeans(report.train_mean, report.target_means)
        return cls(evaluation.ref, kept, answers(kept, means, evaluation.ref))

    @classmethod
    def of_numbers(cls, evaluation: Evaluation) -> "ReportPredictions":
        """Read the predictions of a report on numbers. Raises UsageError if the report is on labels
        or answers."""
        if (measures := evaluation.report.measures) != "numbers":
            raise UsageError(f"expected a report on numbers, but {evaluation.ref} is on {measures}")
        return cls.read(evaluation)

    @property
    def group_names(self) -> list[str]:
        """Names by which predictions can be grouped.

        These are the groups of the data, ``target`` if there are several targets, and ``field`` if
        fields are known.
        """
        names = self.table.column_names
        groups = [name.removeprefix(GROUP) for name in names if name.startswith(GROUP)]
        several = TARGET in names and pc.count_distinct(self.table.column(TARGET)).as_py() > 1
        own = [*[TARGET] * several, *[FIELD] * has_fields(self.table)]
        return [*(name for name in own if name not in groups), *groups]

    def of_target(self, target: str | None) -> "ReportPredictions":
        """Return the predictions of one target, or all if ``target`` is None. Raises UsageError if
        the target is unknown."""
        if not target:
            return self
        names = np.array(self.table.column(TARGET).to_pylist(), object)
        if target not in (targets := sorted(set(names.tolist()))):
            raise unknown(f"target of {self.ref}", target, targets)
        has_target = names == target
        return ReportPredictions(
            self.ref, self.table.filter(has_target), self.answers.take(has_target)
        )

    def by_row(self) -> "ReportPredictions":
        """Return the predictions of models that predict one number per row, keyed only by row.

        The position of a number in its text, and the fold of a table, are then the same for all.
        """
        table = self.table
        index = table.column_names.index("position")
        table = table.set_column(index, "position", pa.array(np.zeros(len(table), np.int32)))
        return ReportPredictions(self.ref, table, self.answers)

    def groups(self, name: str) -> "dict[str, Ints]":
        """Return the indices of the predictions for each value of the group ``name``, keyed by
        value.

        Raises UsageError if the group is unknown.
        """
        if name == "slot" and name not in self.group_names and FIELD in self.group_names:
            note_renamed("group slot", name := FIELD)
        if name not in self.group_names:
            raise unknown("group", name, self.group_names)
        own = GROUP + name in self.table.column_names
        return rows_by_value(self.table.column(GROUP + name if own else name))

    def clusters(self, rows: "Ints") -> int | None:
        """Return the number of clusters among the predictions with the indices ``rows`` [k]. It is
        None if rows are not clustered."""
        return cluster_count(self.table, self.answers.take(rows))

    def same_rows(self, other: "ReportPredictions") -> bool:
        """Return whether ``other`` contains predictions for the same numbers, labels or answers."""
        return _keys(self.table) == _keys(other.table)

    def check_pairs(self, other: "ReportPredictions") -> None:
        """Raise DataError, which states the first difference, unless ``other`` has the same rows,
        true values and clusters."""
        if difference := self._differs(other):
            raise DataError(
                f"different test sets: {difference}. Evaluate both models on the same split of the "
                "same data"
            )
        clusters, other_clusters = (
            predictions.table.column(CLUSTER) if has_clusters(predictions.table) else None
            for predictions in (self, other)
        )
        if clusters != other_clusters:
            raise DataError(
                f"{self.ref} and {other.ref} assign rows to different clusters, so they cannot be "
                "resampled together. Evaluate both models on the same split of the same data"
            )

    def _differs(self, other: "ReportPredictions") -> str:
        """Describe the first row that only one of the two contains, or whose true values differ."""
        keys, other_keys = _keys(self.table), _keys(other.table)
        if keys != other_keys:
            key = min(set(keys) ^ set(other_keys))
            holder, lacking = (self, other) if key in set(keys) else (other, self)
            return f"{_key_text(key)} is in {holder.ref} but not in {lacking.ref}"
        truth, other_truth = (_truth(predictions.answers) for predictions in (self, other))
        for row in np.flatnonzero(truth != other_truth)[:1]:
            ours, theirs = f"{truth[row]} in {self.ref}", f"{other_truth[row]} in {other.ref}"
            return f"{_key_text(keys[row])} is {ours} and {theirs}"
        return ""


def _sorted_predictions(evaluation: Evaluation) -> "pa.Table":
    table = _read_predictions(evaluation)
    return table.sort_by([(name, "ascending") for name in _key(table)]).combine_chunks()


def _read_predictions(evaluation: Evaluation) -> "pa.Table":
    """Read the predictions. Raises StoreError if the file lacks a column that this kind of report
    requires, or was changed."""
    path, report = evaluation.artifact.path / PREDICTIONS_FILE, evaluation.report
    always, schema = _ALWAYS[report.measures], predictions_schema((), measures=report.measures)

    def row_type(name: str) -> "pa.DataType | None":
        if name.startswith(BASELINE):
            return pa.float64()
        return pa.string() if name.startswith(GROUP) or name == CLUSTER else None

    table = read_columns(path, lambda columns: check_schema(path, columns, schema, row_type))
    check_nulls(path, table, lambda name: name not in always)
    if report.numbers and not len(scorable(table)):
        raise damaged(path, "it has no rows that can be scored")
    if report.measures == "numbers":
        valid = table.filter(table.column("valid"))
        check_nulls(path, valid.select(_PREDICTION), lambda name: False)
        if not pc.all(pc.is_finite(valid.column("prediction")), min_count=0).as_py():
            raise damaged(path, "a valid prediction is not a finite number")
        for name, rows in (("truth_literal", scorable(table)), ("prediction_literal", valid)):
            numerals = pc.match_substring_regex(rows.column(name), NUMERAL)
            if not pc.all(numerals, min_count=0).as_py():
                raise damaged(path, f"a value of its column {name!r} is not a written number")
    evaluation.artifact.check(PREDICTIONS_FILE)
    return table


def invalid_fractions(evaluation: Evaluation) -> dict[str | None, float]:
    """Return the fraction of unconstrained outputs that are not numbers, keyed by target name. The
    key None stands for all predictions.

    If decoding was constrained, this is the fraction of predictions for which the unconstrained
    choice would not have been a number. Raises StoreError if the file of predictions is damaged.
    """
    table = scorable(_read_predictions(evaluation))
    unconstrained = table.column("on_grammar")
    is_number = _numbers(table, "valid" if unconstrained.null_count else "on_grammar")
    fractions: dict[str | None, float] = {None: float(1 - is_number.mean())}
    for target, rows in rows_by_value(table.column(TARGET)).items():
        fractions[target] = float(1 - is_number[rows].mean())
    return fractions


def rows_by_value(column: "pa.ChunkedArray[Any]") -> "dict[str, Ints]":
    """Return the row indices of each value in a column, keyed by value. Keys are sorted (see
    ``row.in_order``).

    The key for nulls is ``none``, or ``(none)`` if ``none`` is also a value.
    """
    values = column.to_pylist()
    null_label = "(none)" if "none" in values else "none"
    labels = np.array([null_label if value is None else value for value in values], object)
    names, codes = np.unique(labels, return_inverse=True)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    rows_of = dict(zip(names.tolist(), rows, strict=False))  # an empty column has one empty part
    return {value: rows_of[value] for value in in_order(rows_of)}


def check_measures(metrics: Iterable[Metric], measures: Measures, ref: str) -> None:
    """Raise UsageError if a metric does not apply to predictions of the kind ``measures``. ``ref``
    names the model or report in the message."""
    for metric in metrics:
        if metric.measures != measures:
            applicable = [name for name in METRICS if METRICS[name].measures == measures]
            raise UsageError(
                f"metric {spec_of(metric)} only applies to {metric.measures}, but {ref} is on "
                f"{measures}. Metrics of {measures}: {', '.join(applicable)}"
            )


def _key(table: "pa.Table") -> list[str]:
    return [name for name in _KEY if name in table.column_names]


def _keys(table: "pa.Table") -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in _key(table)), strict=True))


def _key_text(key: tuple[Any, ...]) -> str:
    """``("7", "answer", 0) -> "id '7' (target 'answer', number 0)"``"""
    return f"id {key[0]!r}" + (f" (target {key[1]!r}, number {key[2]})" if key[1:] else "")


def _truth(answers: Predictions) -> "NDArray[Any]":
    if answers.measures == "numbers":
        return answers.truth
    return np.array([repr(label) for label in answers.truth_literal or ()], object)


def scorable(table: "pa.Table") -> "pa.Table":
    """Return the predictions that can be scored: numbers whose true value is finite, rows with a
    true label, and all answers."""
    if ANSWER in table.column_names:
        return table
    if LABEL in table.column_names:
        return table.filter(pc.is_valid(table.column(LABEL))).combine_chunks()
    return table.filter(pc.is_finite(table.column("truth"))).combine_chunks()


def answers(table: "pa.Table", means: TrainMeans, ref: str) -> Predictions:
    """Convert a table of predictions to the arrays from which metrics are computed.

    Invalid predictions of numbers are replaced by ``means``. Raises DataError if the means are
    unknown. ``ref`` names the report or model in the message.
    """
    if LABEL in table.column_names:
        return Predictions.of_labels(
            table.column(LABEL).to_pylist(),
            table.column("prediction").to_pylist(),
            log_probability=_numbers(table, "log_probability"),
            sample=_samples(table),
        )
    if ANSWER in table.column_names:
        texts = (table.column(name).to_pylist() for name in (ANSWER, "prediction"))
        return Predictions.of_texts(*texts, sample=_samples(table))
    valid = _numbers(table, "valid").astype(np.bool_)
    prediction = np.where(valid, _numbers(table, "prediction"), means.at(table))
    if np.isnan(prediction[~valid]).any():
        raise DataError(
            f"{ref} has invalid predictions but no train mean to replace them. Evaluate again on "
            "data with a train split"
        )
    more: dict[str, Any] = {name: _optional(table, name) for name in _MORE}
    outside = _optional(table, "outside")
    if outside is not None and np.isnan(outside).any():
        outside = None
    levels = [_optional(table, quantile_column(level)) for level in QUANTILES]
    return Predictions(
        truth=_numbers(table, "truth"),
        prediction=prediction,
        valid=valid,
        truth_literal=table.column("truth_literal").to_pylist(),
        prediction_literal=table.column("prediction_literal").to_pylist(),
        log_density=_optional(table, "log_density"),
        crps=_optional(table, "crps"),
        quantiles=None
        if any(level is None for level in levels)
        else np.stack(cast("list[Floats]", levels), axis=1),
        sample=_samples(table),
        outside=None if outside is None else outside.astype(np.bool_),
        field=codes_of(table.column(FIELD)) if has_fields(table) else None,
        **more,
    )


def _numbers(table: "pa.Table", name: str) -> "Floats":
    """Return a column as float64[n], with NaN for null."""
    column = table.column(name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _optional(table: "pa.Table", name: str) -> "Floats | None":
    """Return :func:`_numbers`, or None if the whole column is null."""
    column = table.column(name)
    return None if column.null_count == len(column) else _numbers(table, name)


def _samples(table: "pa.Table") -> "Ints":
    """Return the resampling unit of each number as an integer, [n]. Numbers with the same cluster,
    or without clusters the same ID, share a unit."""
    clusters = table.column(CLUSTER).combine_chunks() if has_clusters(table) else None
    return clustered(codes_of(table.column("id")), clusters)


def codes_of(column: "pa.ChunkedArray[Any]") -> "Ints":
    """Return an integer for each string in a column, int64[n], equal for equal strings.

    Integers are assigned in order of first occurrence, starting at 0. Null gets an integer like any
    string.
    """
    coded: Any = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(coded.indices.to_numpy(), np.int64)


def has_fields(table: "pa.Table") -> bool:
    """Return whether any prediction in ``table`` has a field."""
    return FIELD in table.column_names and table.column(FIELD).null_count < len(table)


def has_clusters(table: "pa.Table") -> bool:
    """Return whether the rows of ``table`` have clusters."""
    return CLUSTER in table.column_names


def cluster_count(table: "pa.Table", answers: Predictions) -> int | None:
    """Return the number of distinct clusters among ``answers``; None if the rows of ``table`` are
    not clustered."""
    if answers.sample is None or not has_clusters(table):
        return None
    return len(np.unique(answers.sample))


def clusters_note(count: int) -> str:
    """Return a note that tells readers that intervals resample ``count`` clusters.

    >>> clusters_note(6)
    'Intervals resample 6 clusters of rows; with few clusters they are approximate.'
    """
    rough = "; with few clusters they are approximate" if count < _FEW_CLUSTERS else ""
    return f"Intervals resample {count:,} clusters of rows{rough}."
