"""Reads and writes report artifacts: the report, its timing and its predictions.

Predictions are sorted by ID, target and position (labels and answers by ID) when they are read.
Predictions for the same test set are therefore in the same order for every scheme and any division
into shards.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from numtok import files
from numtok.arrays import Ints
from numtok.errors import DataError, UsageError, unknown
from numtok.evaluation.prediction_table import (
    ANSWER,
    TARGET,
    TrainMeans,
    answers_of,
    cluster_count,
    has_clusters,
    has_fields,
    key_columns,
    keys_of,
    number_column,
    rows_by_value,
    scorable,
)
from numtok.metrics.base import Predictions
from numtok.numerals.policy import NUMERAL
from numtok.reports import (
    BASELINE,
    FIELD,
    PREDICTIONS_FILE,
    REPORT_FILE,
    SCHEMA,
    Measures,
    Report,
    predictions_schema,
)
from numtok.row import CLUSTER, GROUP
from numtok.setting_names import note_renamed
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, check_schema, damaged, read_columns
from numtok.store.draft import Draft
from numtok.stored_json import StoredJson

_TRUTH, _PREDICTION = ("truth_literal", "truth"), ["prediction_literal", "prediction"]
_ALWAYS: dict[Measures, tuple[str, ...]] = {  # columns without nulls
    "numbers": ("id", TARGET, "position", *_TRUTH, "valid"),
    "labels": ("id", "prediction"),
    "answers": ("id", ANSWER, "prediction", "ended"),
}


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


def write_predictions(draft: Draft, table: pa.Table) -> None:
    """Write predictions.parquet to the draft of a report artifact. ``table`` has the schema
    ``reports.predictions_schema``."""
    with files.Sink(draft.path / PREDICTIONS_FILE) as sink:
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)


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


@dataclass(frozen=True, eq=False)
class ReportPredictions:
    """The ``n`` predictions of a report that can be scored, sorted by ID, target and position."""

    ref: str
    table: pa.Table  # columns of reports.predictions_schema, [n]
    answers: Predictions

    @classmethod
    def read(cls, evaluation: Evaluation) -> "ReportPredictions":
        """Read the predictions of a report.

        Raises StoreError if the file of predictions is damaged, and DataError if two predictions
        have the same ID, target and position.
        """
        table = _sorted_predictions(evaluation)
        keys = keys_of(table)
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
    def _of(cls, evaluation: Evaluation, table: pa.Table) -> "ReportPredictions":
        report, kept = evaluation.report, scorable(table)
        means = TrainMeans(report.train_mean, report.target_means)
        return cls(evaluation.ref, kept, answers_of(kept, means, evaluation.ref))

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

    def groups(self, name: str) -> dict[str, Ints]:
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

    def clusters(self, rows: Ints) -> int | None:
        """Return the number of clusters among the predictions with the indices ``rows`` [k]. It is
        None if rows are not clustered."""
        return cluster_count(self.table, self.answers.take(rows))

    def same_rows(self, other: "ReportPredictions") -> bool:
        """Return whether ``other`` contains predictions for the same numbers, labels or answers."""
        return keys_of(self.table) == keys_of(other.table)

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
        keys, other_keys = keys_of(self.table), keys_of(other.table)
        if keys != other_keys:
            key = min(set(keys) ^ set(other_keys))
            holder, lacking = (self, other) if key in set(keys) else (other, self)
            return f"{_key_text(key)} is in {holder.ref} but not in {lacking.ref}"
        truth, other_truth = (_truth(predictions.answers) for predictions in (self, other))
        for row in np.flatnonzero(truth != other_truth)[:1]:
            ours, theirs = f"{truth[row]} in {self.ref}", f"{other_truth[row]} in {other.ref}"
            return f"{_key_text(keys[row])} is {ours} and {theirs}"
        return ""


def _sorted_predictions(evaluation: Evaluation) -> pa.Table:
    table = _read_predictions(evaluation)
    return table.sort_by([(name, "ascending") for name in key_columns(table)]).combine_chunks()


def _read_predictions(evaluation: Evaluation) -> pa.Table:
    """Read the predictions. Raises StoreError if the file lacks a column that this kind of report
    requires, or was changed."""
    path, report = evaluation.artifact.path / PREDICTIONS_FILE, evaluation.report
    always, schema = _ALWAYS[report.measures], predictions_schema((), measures=report.measures)

    def row_type(name: str) -> pa.DataType | None:
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
    is_number = number_column(table, "valid" if unconstrained.null_count else "on_grammar")
    fractions: dict[str | None, float] = {None: float(1 - is_number.mean())}
    for target, rows in rows_by_value(table.column(TARGET)).items():
        fractions[target] = float(1 - is_number[rows].mean())
    return fractions


def _key_text(key: tuple[Any, ...]) -> str:
    """``("7", "answer", 0) -> "id '7' (target 'answer', number 0)"``"""
    return f"id {key[0]!r}" + (f" (target {key[1]!r}, number {key[2]})" if key[1:] else "")


def _truth(answers: Predictions) -> NDArray[Any]:
    if answers.measures == "numbers":
        return answers.truth
    return np.array([repr(label) for label in answers.truth_literal or ()], object)
