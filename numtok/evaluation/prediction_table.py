"""Tables of predictions, with the columns of ``reports.predictions_schema``: their keys, groups and
clusters, and the arrays from which metrics are computed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Floats, Ints
from numtok.encoding.dataset import clustered
from numtok.errors import DataError, UsageError
from numtok.metrics.base import METRICS, Metric, Predictions
from numtok.registry import spec_of
from numtok.reports import FIELD, QUANTILES, Measures, quantile_column
from numtok.row import CLUSTER, in_order

TARGET = "target"  # column by which predictions can be grouped
LABEL = "label"  # column that only predictions of labels have
ANSWER = "answer"  # column that only predictions of answers have
FOLD = "fold"  # name of the group that holds the folds of a table
_FEW_CLUSTERS = 20  # with fewer, bootstrap percentiles cover less than their nominal level
#: Numeric columns that are fields of ``Predictions``; null if unknown.
_MORE = (
    "pit", "log_density_tailed", "log_interval", "token_nll", "log_range", "field_median",
    "interval_low", "interval_high",
)  # fmt: skip
_KEY = ("id", TARGET, "position")  # only the ID for labels and answers


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

    def at(self, table: pa.Table) -> Floats:
        """Return the mean that applies to each prediction in ``table``, float64[n]; NaN if it is
        not known."""
        default = np.nan if self.overall is None else self.overall
        names = table.column(TARGET).to_pylist() if self.of_target else [""] * table.num_rows
        return np.array([self.of_target.get(name, default) for name in names], np.float64)


def scorable(table: pa.Table) -> pa.Table:
    """Return the predictions that can be scored: numbers whose true value is finite, rows with a
    true label, and all answers."""
    if ANSWER in table.column_names:
        return table
    if LABEL in table.column_names:
        return table.filter(pc.is_valid(table.column(LABEL))).combine_chunks()
    return table.filter(pc.is_finite(table.column("truth"))).combine_chunks()


def answers_of(table: pa.Table, means: TrainMeans, ref: str) -> Predictions:
    """Convert a table of predictions to the arrays from which metrics are computed.

    Invalid predictions of numbers are replaced by ``means``. Raises DataError if the means are
    unknown. ``ref`` names the report or model in the message.
    """
    if LABEL in table.column_names:
        return Predictions.of_labels(
            table.column(LABEL).to_pylist(),
            table.column("prediction").to_pylist(),
            log_probability=number_column(table, "log_probability"),
            sample=_samples(table),
        )
    if ANSWER in table.column_names:
        texts = (table.column(name).to_pylist() for name in (ANSWER, "prediction"))
        return Predictions.of_texts(*texts, sample=_samples(table))
    valid = number_column(table, "valid").astype(np.bool_)
    prediction = np.where(valid, number_column(table, "prediction"), means.at(table))
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
        truth=number_column(table, "truth"),
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


def _samples(table: pa.Table) -> Ints:
    """Return the resampling unit of each number as an integer, [n]. Numbers with the same cluster,
    or without clusters the same ID, share a unit."""
    clusters = table.column(CLUSTER).combine_chunks() if has_clusters(table) else None
    return clustered(codes_of(table.column("id")), clusters)


def number_column(table: pa.Table, name: str) -> Floats:
    """Return a column as float64[n], with NaN for null."""
    column = table.column(name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _optional(table: pa.Table, name: str) -> Floats | None:
    """Return :func:`number_column`, or None if the whole column is null."""
    column = table.column(name)
    return None if column.null_count == len(column) else number_column(table, name)


def key_columns(table: pa.Table) -> list[str]:
    """Return the names of the columns that identify a prediction."""
    return [name for name in _KEY if name in table.column_names]


def keys_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the key of each prediction: its ID, target and position, or only its ID."""
    return list(zip(*(table.column(name).to_pylist() for name in key_columns(table)), strict=True))


def repeated_ids(table: pa.Table) -> Iterator[str]:
    """Yield a note if several predictions have the same ID, target and position (for labels and
    answers, the same ID)."""
    keys = table.select(key_columns(table))
    if repeats := keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows:
        yield (
            f"IDs are repeated ({repeats:,} duplicates), so `numtok compare` cannot pair the "
            "predictions. Give each row of the data a unique id."
        )


def rows_by_value(column: "pa.ChunkedArray[Any]") -> dict[str, Ints]:
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


def codes_of(column: "pa.ChunkedArray[Any]") -> Ints:
    """Return an integer for each string in a column, int64[n], equal for equal strings.

    Integers are assigned in order of first occurrence, starting at 0. Null gets an integer like any
    string.
    """
    coded: Any = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(coded.indices.to_numpy(), np.int64)


def has_fields(table: pa.Table) -> bool:
    """Return whether any prediction in ``table`` has a field."""
    return FIELD in table.column_names and table.column(FIELD).null_count < len(table)


def has_clusters(table: pa.Table) -> bool:
    """Return whether the rows of ``table`` have clusters."""
    return CLUSTER in table.column_names


def cluster_count(table: pa.Table, answers: Predictions) -> int | None:
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
