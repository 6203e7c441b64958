"""Calibration of a model's prediction intervals, and those of its baselines, on the predictions of
a report."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.reading.split_rule import CALIBRATION, TRAIN, SplitRule
from numtok.data.tables.table import VALIDATION, read_table_of
from numtok.encoding.splits import read_split, splits
from numtok.evaluation.conformal import Calibrated, Forecasts, calibrate, least
from numtok.evaluation.prediction_table import FOLD, TARGET, TrainMeans, answers_of, scorable
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.evaluation.scoring import BaselineAnswers
from numtok.metrics.base import Predictions
from numtok.reports import BASELINE, INTERVAL_LEVEL, LIMITS
from numtok.row import GROUP
from numtok.store.artifact import TABLE, Artifact

MOST_ROWS = 2000  # maximum number of calibration rows
#: Splits without intervals, because their rows train, choose or calibrate the model.
USED = (TRAIN, VALIDATION, CALIBRATION)
ENDS = ("interval_low", "interval_high")  # columns of predictions


def calibration_split(data: Artifact) -> str | None:
    """Return the split of ``data`` that intervals are calibrated on: ``calibration``, otherwise
    ``validation``. Returns None if neither exists. In tables, rows that were held out of the train
    split count as ``validation``."""
    if data.kind == TABLE:
        table = read_table_of(data)
        every = [table.splits(fold) for fold in range(len(table.file.splits))]
        return CALIBRATION if all(CALIBRATION in names for names in every) else VALIDATION
    return calibrating(splits(data))


def calibrating(names: Collection[str]) -> str | None:
    """Return which of the given splits calibrates intervals; None if none does."""
    return next((name for name in (CALIBRATION, VALIDATION) if name in names), None)


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """Report on a calibration split, with its ``n`` predictions that can be scored."""

    evaluation: Evaluation
    data: Artifact
    predictions: ReportPredictions

    @classmethod
    def read(cls, artifact: Artifact, data: Artifact) -> "CalibrationReport":
        """Read a report on a split of ``data``. Raises StoreError if it is damaged."""
        evaluation = read(artifact)
        return cls(evaluation, data, ReportPredictions.unpaired(evaluation))

    def of_model(self, level: float) -> Calibrated:
        """Calibrate the model's intervals at a level."""
        return self._calibrated(self.predictions.answers, strata(self.predictions.table), level)

    @cached_property
    def model(self) -> Calibrated:
        """The model's calibration at ``INTERVAL_LEVEL``."""
        return self.of_model(INTERVAL_LEVEL)

    def with_intervals(self, table: pa.Table, means: TrainMeans, ref: str) -> pa.Table:
        """Return a table of predictions with its interval columns filled in. Rows that cannot be
        scored have no intervals.

        ``means`` replaces invalid predictions. ``ref`` names the model in messages.
        """
        kept = scorable(table)
        answers = answers_of(kept, means, ref)
        ends = self.model.intervals(_forecasts(answers, strata(kept)))
        return with_values(table, dict(zip(ENDS, ends, strict=True)))

    def of_baselines(
        self, baselines: Collection[BaselineAnswers], table: pa.Table
    ) -> Iterator[BaselineAnswers]:
        """Yield baselines with intervals, calibrated on the same baseline's predictions in this
        report. Baselines without such predictions are unchanged.

        ``table`` contains the predictions of the model in the same order.
        """
        names = strata(table)
        for baseline in baselines:
            if (calibrated := self._of_baseline(baseline.name, baseline.partial)) is not None:
                low, high = calibrated.intervals(_forecasts(baseline.answers, names))
                answers = baseline.answers._replace(interval_low=low, interval_high=high)
                baseline = baseline._replace(answers=answers)
            yield baseline

    def _of_baseline(self, name: str, partial: bool) -> Calibrated | None:
        table, report = self.predictions.table, self.evaluation.report
        if BASELINE + name not in table.column_names:
            return None
        values = table.column(BASELINE + name).to_numpy()
        valid = np.isfinite(values)
        fallback = TrainMeans(report.train_mean, report.target_means).at(table)
        answers = self.predictions.answers._replace(
            prediction=np.where(valid, values, np.nan_to_num(fallback)), quantiles=None
        )
        rows = valid if partial else np.ones(len(values), np.bool_)
        return self._calibrated(answers.take(rows), strata(table)[rows], INTERVAL_LEVEL)

    def _calibrated(
        self, answers: Predictions, names: NDArray[np.object_], level: float
    ) -> Calibrated:
        assert answers.sample is not None  # answers of a report have it
        forecasts, clipped = _forecasts(answers, names), self._nonnegative
        return calibrate(answers.truth, forecasts, answers.sample, level, nonnegative=clipped)

    @cached_property
    def _nonnegative(self) -> set[str]:
        return nonnegative(self.data)

    def notes(self, level: float = INTERVAL_LEVEL) -> Iterator[str]:
        """Yield a note on each property of the calibration rows that limits the coverage of
        intervals at ``level``."""
        split, answers = self.evaluation.report.split, self.predictions.answers
        if split == VALIDATION:
            yield (
                f"{100 * level:g}% intervals are calibrated on split {split!r} of {self.data.ref}, "
                "which also selected the model. For rows of their own, add a split calibration."
            )
        assert answers.sample is not None
        units = len(np.unique(answers.sample))
        yield from coverage_notes(self.of_model(level), units, self.data)


def coverage_notes(calibrated: Calibrated, units: int, data: Artifact) -> Iterator[str]:
    """Yield a note if calibrated intervals are infinite, or if their coverage is not guaranteed
    because of how ``data`` is split. ``units`` is the number of calibration rows or clusters."""
    percent = f"{100 * calibrated.level:g}%"
    margins = calibrated.margins
    if lacking := sorted(name for name, margin in margins.items() if np.isinf(margin)):
        yield (
            f"{percent} intervals of {', '.join(map(repr, lacking))} are infinite: they need at "
            f"least {least(calibrated.level):,} calibration rows or clusters each (there are "
            f"{units:,} in all)."
        )
    if by := split_by(data):
        yield (
            f"Rows are split by {by!r}, so calibration rows and later rows are not exchangeable: "
            f"{percent} coverage is not guaranteed."
        )


def split_by(data: Artifact) -> str | None:
    """Return the name of the group or column whose values split the rows of ``data``; None for
    other splits."""
    rule = data.manifest.settings.get("split")
    rule = SplitRule.parse(rule).settings() if isinstance(rule, str) else rule  # rendered records
    by = rule.get("by") if isinstance(rule, dict) and "starts" in rule else None
    return by if isinstance(by, str) else None


def strata(table: pa.Table) -> NDArray[np.object_]:
    """Return the stratum of each prediction, [n]: its target and, if the table of rows has several
    folds, its fold."""
    names = np.array(table.column(TARGET).to_pylist(), object)
    if GROUP + FOLD in table.column_names:
        folds = table.column(GROUP + FOLD).to_pylist()
        return np.array([of_fold(*pair) for pair in zip(names, folds, strict=True)], object)
    return names


def nonnegative(data: Artifact) -> set[str]:
    """Return the strata of ``data`` without negative values in the train split. Numbers that are
    not targets have none."""
    if data.kind == TABLE:
        table = read_table_of(data)
        target, folds = table.file.target, range(len(table.file.splits))
        least = [table.target[table.split(TRAIN, fold)].min() for fold in folds]
        names = [target] if len(folds) == 1 else [of_fold(target, fold) for fold in folds]
        return {name for name, value in zip(names, least, strict=True) if value >= 0}
    train = read_split(data, TRAIN)
    targets = np.array(train.target_name.to_pylist(), object)
    negative = targets[~(train.numbers[train.targets] >= 0)]  # or not finite
    return set(targets.tolist()) - set(negative.tolist())


def of_fold(target: str, fold: object) -> str:
    """Return the name of the stratum of a target in one of several folds."""
    return f"{target}, fold {fold}"


def baseline_columns(
    baselines: Collection[BaselineAnswers],
) -> dict[str, NDArray[np.float64]]:
    """Return the predictions of each baseline as a column of predictions, float64[n], keyed by
    column name; NaN if invalid. Baselines computed from the true values are left out."""
    return {
        BASELINE + name: np.where(answers.valid, answers.prediction, np.nan)
        for name, answers, _ in baselines
        if name not in LIMITS and answers.measures == "numbers"
    }


def with_values(table: pa.Table, columns: dict[str, NDArray[np.float64]]) -> pa.Table:
    """Return a table of predictions with columns for its rows that can be scored, float64[k] keyed
    by name, added or replaced. All other rows are null."""
    kept = pc.is_finite(table.column("truth")).to_numpy()
    for name, values in columns.items():
        whole = np.full(table.num_rows, np.nan)
        whole[kept] = values
        column = pa.array(whole, mask=np.isnan(whole))
        index = table.schema.get_field_index(name)
        table = (
            table.append_column(name, column)
            if index < 0
            else table.set_column(index, name, column)
        )
    return table


def _forecasts(answers: Predictions, names: NDArray[np.object_]) -> Forecasts:
    return Forecasts(point=answers.prediction, quantiles=answers.quantiles, strata=names)
