"""Report artifacts: the report, its clocks, and its predictions in an order of their own.

Predictions are sorted by id, target and position (of labels and answers by id), so those of one
test set come in one order, whatever the scheme and the shards were.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
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
    PREDICTIONS_FILE,
    QUANTILES,
    REPORT_FILE,
    SCHEMA,
    SLOT,
    Measures,
    Report,
    predictions_schema,
    quantile_column,
)
from numtok.row import CLUSTER, GROUP, in_order
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, check_schema, damaged, read_columns
from numtok.store.draft import Draft
from numtok.stored_json import StoredJson

TARGET = "target"  # predictions can be grouped by it
LABEL = "label"  # a column of predictions of labels alone
ANSWER = "answer"  # likewise of answers
FOLD = "fold"  # the group of predictions by the folds of a table
_FEW_CLUSTERS = 20  # of which percentiles of resamples cover less than they say
_TRUTH, _PREDICTION = ("truth_literal", "truth"), ["prediction_literal", "prediction"]
_ALWAYS: dict[Measures, tuple[str, ...]] = {  # columns that say something of each row
    "numbers": ("id", TARGET, "position", *_TRUTH, "valid"),
    "labels": ("id", "prediction"),
    "answers": ("id", ANSWER, "prediction", "ended"),
}
#: Columns of numbers, null where unknown, that are fields of ``Predictions``.
_MORE = ("pit", "log_density_tailed", "log_interval", "token_nll", "log_range", "slot_median")
_KEY = ("id", TARGET, "position")  # of a label or an answer the id alone


class Timing(msgspec.Struct, frozen=True):
    """The clocks of a report, in seconds; None where nobody looked."""

    train_seconds: float | None = None
    eval_seconds: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """One report artifact."""

    ref: str
    report: Report
    timing: Timing
    folder: Path


def write_predictions(draft: Draft, table: "pa.Table") -> None:
    """Write the predictions of a report (``reports.predictions_schema``) into its draft."""
    with files.Sink(draft.path / PREDICTIONS_FILE) as sink:
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)


def repeated_ids(table: "pa.Table") -> Iterator[str]:
    """A note where predictions cannot be told from each other by their keys."""
    keys = table.select(_key(table))
    if lacking := keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows:
        yield (
            f"Ids are repeated ({lacking:,} predictions too many), so compare cannot pair them; "
            "give each row of the data an id of its own."
        )


def publish(draft: Draft, model: Artifact, report: Report, timing: Mapping[str, float]) -> Artifact:
    """Write a report beside its predictions and publish it; ``timing`` is of predicting, what is
    loaded before and scored behind it apart."""
    _REPORT.write(draft.path, report)
    return draft.publish(
        {"rows": report.rows, report.measures: report.numbers},
        {"train_seconds": model.seconds, **timing},
    )


def read(artifact: Artifact) -> Evaluation:
    """Read a report and its clocks; StoreError for one that is damaged or of a newer schema."""
    report, timing = _REPORT.read(artifact.path), artifact.timing(Timing)
    return Evaluation(artifact.ref, report, timing, artifact.path)


_REPORT = StoredJson(name=REPORT_FILE, kind=Report, newest=SCHEMA)


@dataclass(frozen=True)
class TrainMeans:
    """What an invalid prediction counts as: the mean of the train split, of its target where rows
    have several."""

    overall: float | None
    of_target: Mapping[str, float] = field(default_factory=dict)

    def at(self, table: "pa.Table") -> "Floats":
        """float64[n]: of each prediction; NaN where nothing is known."""
        usual = np.nan if self.overall is None else self.overall
        names = table.column(TARGET).to_pylist() if self.of_target else [""] * table.num_rows
        return np.array([self.of_target.get(name, usual) for name in names], np.float64)


@dataclass(frozen=True, eq=False)
class ReportPredictions:
    """The ``n`` predictions of a report that can be scored, sorted by id, target and position."""

    ref: str
    table: "pa.Table"  # columns of reports.predictions_schema, [n]
    answers: Predictions

    @classmethod
    def read(cls, evaluation: Evaluation) -> "ReportPredictions":
        """Raises StoreError for a damaged file, DataError for repeated keys."""
        report = evaluation.report
        table = _read_predictions(evaluation.folder / PREDICTIONS_FILE, report)
        table = table.sort_by([(name, "ascending") for name in _key(table)]).combine_chunks()
        kept = scorable(table)
        means = TrainMeans(report.train_mean, report.target_means)
        found = answers(kept, means, evaluation.ref)
        keys = _keys(table)
        for key, following in pairwise(keys):
            if key == following:
                raise DataError(
                    f"{evaluation.ref} has {_key_text(key)} twice, so its predictions cannot be "
                    "paired; give the rows of the data ids of their own and evaluate again"
                )
        return cls(evaluation.ref, kept, found)

    @classmethod
    def of_numbers(cls, evaluation: Evaluation) -> "ReportPredictions":
        """As :meth:`read`; UsageError where they are of labels or of answers."""
        if (measures := evaluation.report.measures) != "numbers":
            raise UsageError(f"{evaluation.ref} is of {measures}; name a report of numbers")
        return cls.read(evaluation)

    @property
    def group_names(self) -> list[str]:
        """What the predictions can be grouped by; ``target`` where they are of several, ``slot``
        where they have some."""
        names = self.table.column_names
        found = [name.removeprefix(GROUP) for name in names if name.startswith(GROUP)]
        several = TARGET in names and pc.count_distinct(self.table.column(TARGET)).as_py() > 1
        own = [*[TARGET] * several, *[SLOT] * has_slots(self.table)]
        return [*(name for name in own if name not in found), *found]

    def of_target(self, target: str | None) -> "ReportPredictions":
        """Return the predictions of one target, or all for None; UsageError if it is unknown."""
        if not target:
            return self
        names = np.array(self.table.column(TARGET).to_pylist(), object)
        if target not in (known := sorted(set(names.tolist()))):
            raise unknown(f"target of {self.ref}", target, known)
        mine = names == target
        return ReportPredictions(self.ref, self.table.filter(mine), self.answers.take(mine))

    def groups(self, name: str) -> "dict[str, Ints]":
        """The rows of each value of a group, as :func:`rows_by_value`; UsageError if unknown."""
        if name not in self.group_names:
            raise unknown("group", name, self.group_names)
        own = GROUP + name in self.table.column_names
        return rows_by_value(self.table.column(GROUP + name if own else name))

    def clusters(self, rows: "Ints") -> int | None:
        """As :func:`cluster_count` of some of them, by their indices [k]."""
        return cluster_count(self.table, self.answers.take(rows))

    def same_rows(self, other: "ReportPredictions") -> bool:
        """Whether both are of the same numbers or labels."""
        return _keys(self.table) == _keys(other.table)

    def check_pairs(self, other: "ReportPredictions") -> None:
        """DataError unless both are of the same numbers or labels, with the first that differs."""
        if why := self._differs(other):
            raise DataError(
                f"different test sets: {why}; compare needs reports on the same rows: "
                "evaluate both models on one split of the same data"
            )
        mine, others = (
            one.table.column(CLUSTER) if has_clusters(one.table) else None for one in (self, other)
        )
        if mine != others:
            raise DataError(
                f"the rows of {self.ref} and {other.ref} are in other clusters, so they cannot be "
                "drawn together; evaluate both models on one split of the same data"
            )

    def _differs(self, other: "ReportPredictions") -> str:
        """Describe the first row that only one of the two has, or whose true values differ."""
        mine, others = _keys(self.table), _keys(other.table)
        if mine != others:
            key = min(set(mine) ^ set(others))
            which, lacking = (self, other) if key in set(mine) else (other, self)
            return f"{_key_text(key)} is in {which.ref} and not in {lacking.ref}"
        truth, others_truth = (_truth(one.answers) for one in (self, other))
        for row in np.flatnonzero(truth != others_truth)[:1]:
            ours, theirs = f"{truth[row]} in {self.ref}", f"{others_truth[row]} in {other.ref}"
            return f"{_key_text(mine[row])} is {ours} and {theirs}"
        return ""


def _read_predictions(path: Path, report: Report) -> "pa.Table":
    """The columns that ``reports`` says of what the report measures, with what each row needs."""
    always, schema = _ALWAYS[report.measures], predictions_schema((), measures=report.measures)

    def of_rows(name: str) -> "pa.DataType | None":
        return pa.string() if name.startswith(GROUP) or name == CLUSTER else None

    table = read_columns(path, lambda there: check_schema(path, there, schema, of_rows))
    check_nulls(path, table, lambda name: name not in always)
    if report.numbers and not len(scorable(table)):
        raise damaged(path, "it has no rows that the figures can be of")
    if report.measures == "numbers":
        valid = table.filter(table.column("valid"))
        check_nulls(path, valid.select(_PREDICTION), lambda name: False)
        if not pc.all(pc.is_finite(valid.column("prediction")), min_count=0).as_py():
            raise damaged(path, "a valid prediction is no finite number")
        for name, rows in (("truth_literal", scorable(table)), ("prediction_literal", valid)):
            numerals = pc.match_substring_regex(rows.column(name), NUMERAL)
            if not pc.all(numerals, min_count=0).as_py():
                raise damaged(path, f"a value of its column {name!r} is no number as it is written")
    return table


def left_alone(evaluation: Evaluation) -> dict[str | None, float]:
    """Of each target (None: of all numbers) the share that a model left to itself says as no
    number: that would have been none without constrained decoding, or of free decoding were none.

    Raises StoreError for a damaged file.
    """
    table = scorable(_read_predictions(evaluation.folder / PREDICTIONS_FILE, evaluation.report))
    unconstrained = table.column("on_grammar")
    said = _numbers(table, "valid" if unconstrained.null_count else "on_grammar")
    found: dict[str | None, float] = {None: float(1 - said.mean())}
    for target, rows in rows_by_value(table.column(TARGET)).items():
        found[target] = float(1 - said[rows].mean())
    return found


def rows_by_value(column: "pa.ChunkedArray[Any]") -> "dict[str, Ints]":
    """The rows of each value, in order; ``none`` for no value, or where a value is called so
    ``(none)``."""
    values = column.to_pylist()
    nothing = "(none)" if "none" in values else "none"
    told = np.array([nothing if value is None else value for value in values], object)
    names, place = np.unique(told, return_inverse=True)
    rows = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
    found = dict(zip(names.tolist(), rows, strict=False))  # of nothing there is one empty part
    return {value: found[value] for value in in_order(found)}


def check_measures(metrics: Iterable[Metric], measures: Measures, ref: str) -> None:
    """UsageError for a metric of numbers where predictions are of labels, or the reverse."""
    for metric in metrics:
        if metric.measures != measures:
            known = [name for name in METRICS if METRICS[name].measures == measures]
            raise UsageError(
                f"metric {spec_of(metric)} measures {metric.measures}, and {ref} is of {measures}; "
                f"metrics of {measures} are {', '.join(known)}"
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
    """The predictions whose truth is finite, a label or a text: the others cannot be scored."""
    if ANSWER in table.column_names:
        return table
    if LABEL in table.column_names:
        return table.filter(pc.is_valid(table.column(LABEL))).combine_chunks()
    return table.filter(pc.is_finite(table.column("truth"))).combine_chunks()


def answers(table: "pa.Table", means: TrainMeans, ref: str) -> Predictions:
    """Predictions as metrics take them."""
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
            f"{ref} has invalid predictions and no train mean to score them by; "
            "evaluate again, on data that have a train split"
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
        slot=codes_of(table.column(SLOT)) if has_slots(table) else None,
        **more,
    )


def _numbers(table: "pa.Table", name: str) -> "Floats":
    """A column as float64[n], NaN for null."""
    column = table.column(name)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _optional(table: "pa.Table", name: str) -> "Floats | None":
    """As :func:`_numbers`, but None where it says nothing of any row."""
    column = table.column(name)
    return None if column.null_count == len(column) else _numbers(table, name)


def _samples(table: "pa.Table") -> "Ints":
    """What each number is drawn together with: an integer for each cluster, or id, [n]."""
    clusters = table.column(CLUSTER).combine_chunks() if has_clusters(table) else None
    return clustered(codes_of(table.column("id")), clusters)


def codes_of(column: "pa.ChunkedArray[Any]") -> "Ints":
    """int64[n]: the same integer for the same text, from 0 on in the order in which they come; null
    is a text, too."""
    coded: Any = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(coded.indices.to_numpy(), np.int64)


def has_slots(table: "pa.Table") -> bool:
    """Whether predictions say which slots they are of."""
    return SLOT in table.column_names and table.column(SLOT).null_count < len(table)


def has_clusters(table: "pa.Table") -> bool:
    """Whether some of the rows belong together."""
    return CLUSTER in table.column_names


def cluster_count(table: "pa.Table", answers: Predictions) -> int | None:
    """How many clusters some answers of a table are of; None where rows stand for themselves."""
    if answers.sample is None or not has_clusters(table):
        return None
    return len(np.unique(answers.sample))


def clusters_note(count: int) -> str:
    """What a reader of intervals over so many clusters must know.

    >>> clusters_note(6)
    'Intervals are over 6 clusters of rows that belong together; those of so few are rough.'
    """
    rough = "; those of so few are rough" if count < _FEW_CLUSTERS else ""
    return f"Intervals are over {count:,} clusters of rows that belong together{rough}."
