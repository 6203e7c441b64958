"""Scoring: computes metrics over all predictions, for each target, group and field, and for
baselines."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Ints
from numtok.errors import DataError
from numtok.evaluation.prediction_table import (
    TARGET,
    TrainMeans,
    answers_of,
    cluster_count,
    clusters_note,
    has_fields,
    rows_by_value,
    scorable,
)
from numtok.metrics.base import METRICS, Metric, Predictions, figures, paired
from numtok.registry import spec_of
from numtok.reports import FIELD, LIMITS, BestBaseline, Figure, Figures
from numtok.row import GROUP

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_GROUPS = 64  # maximum number of values of a group that are scored separately
_IN_FIELDS = ("field-skill", "r2", "mae", "median-relative-error")
_DECIDING = ("field-skill", "mae", "accuracy")  # the first that baselines have decides

Progress = Callable[[str, int, int], None]  # reports activity, items done, items in total


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Metrics of a report and the predictions that they score.

    answers
        Predictions that can be scored (see :func:`scorable`).
    targets
        [n], target name of each prediction; empty for labels and answers.
    fallback
        float64[n], train mean that replaces each prediction if the prediction is invalid.
    left_out
        Number of predictions that cannot be scored.
    metrics, valid_metrics
        Metrics over all predictions, and over the valid predictions only (empty if all are valid).
    by_target, groups, fields
        Metrics for each target, for each value of each group, and for each field.
    notes
        Caveats for readers, one sentence each.
    """

    answers: Predictions
    targets: NDArray[np.object_]
    fallback: Floats
    left_out: int
    metrics: Figures
    valid_metrics: Figures  # over the valid predictions only; empty if all are valid
    by_target: dict[str, Figures]
    groups: dict[str, dict[str, Figures]]
    fields: dict[str, Figures]
    notes: list[str]


def score(
    table: "pa.Table",
    means: TrainMeans,
    *,
    defaults: Sequence[Metric],
    few: Sequence[Metric],
    more: Sequence[Metric],
    ref: str,
    progress: Progress,
) -> Scores:
    """Compute the metrics for a table of predictions (``reports.predictions_schema``).

    means
        Means of the training targets, which replace invalid predictions.
    defaults
        Metrics over all predictions. Metrics are skipped if the columns that they need are missing.
    few
        Metrics for each target and group.
    more
        Metrics over all predictions and for each target, group and field.
    ref
        REF of the model, for messages.

    Raises DataError if there is nothing to score.
    """
    kept = scorable(table)
    if not kept.num_rows:
        raise DataError("nothing to score: none of the true values is finite")
    answers = answers_of(kept, means, ref)
    every = [metric for metric in defaults if metric.missing(answers) is None]
    metrics = list(dict.fromkeys([*every, *more]))
    parts = list(_parts(kept))
    fields = _fields(kept, answers)
    total = 2 + len(parts) + len(fields)
    progress("scoring", 0, total)
    over_all = figures(metrics, answers)
    progress("scoring", 1, total)
    by_group: dict[str, dict[str, Figures]] = defaultdict(dict)
    for done, (group, name, rows) in enumerate(parts, 2):
        # A group of one value contains all rows, whose metrics are known.
        is_all = len(rows) == kept.num_rows
        values = over_all if is_all else figures([*few, *more], answers.take(rows))
        by_group[group][name] = values
        progress("scoring", done, total)
    in_fields = list(dict.fromkeys([*map(METRICS.build, _IN_FIELDS), *more]))
    by_field: dict[str, Figures] = {}
    for name, indices in fields.items():
        by_field[name] = figures(in_fields, answers.take(indices))
        progress("scoring", 1 + len(parts) + len(by_field), total)
    valid = {} if answers.valid.all() else figures(metrics, answers.take(answers.valid))
    return Scores(
        answers=answers,
        targets=_targets(kept),
        fallback=means.at(kept),
        left_out=table.num_rows - kept.num_rows,
        metrics=over_all,
        valid_metrics=valid,
        by_target=by_group.pop("", {}),
        groups=dict(sorted(by_group.items())),
        fields=by_field,
        notes=[
            *([clusters_note(count)] if (count := cluster_count(kept, answers)) else []),
            *_unknown(metrics, answers),
            *_too_many(kept),
        ],
    )


def _too_many(kept: "pa.Table") -> Iterator[str]:
    """Yield notes on groups with too many values to score separately."""
    for column in (name for name in kept.column_names if name.startswith(GROUP)):
        if (values := pc.count_distinct(kept.column(column), mode="all").as_py()) > _MOST_GROUPS:
            yield (
                f"Metrics by {column.removeprefix(GROUP)} are missing: it has {values:,} values, "
                f"more than {_MOST_GROUPS}. They are all in predictions.parquet."
            )


def _unknown(metrics: Sequence[Metric], answers: Predictions) -> Iterator[str]:
    """Yield notes on metrics that are defined for only some of the numbers."""
    if answers.measures != "numbers":
        return
    of: dict[int, list[str]] = {}
    for metric in metrics:
        if metric.missing(answers) is None and FIELD not in metric.needs:
            of.setdefault(int(metric.is_known(answers).sum()), []).append(spec_of(metric))
    for count, names in of.items():
        if count < len(answers.truth):
            yield (
                f"Computed over only {count:,} of {len(answers.truth):,} numbers, as the others "
                f"lack the required values: {', '.join(names)}."
            )


class BaselineAnswers(NamedTuple):
    """Predictions of one baseline, in the order of ``Scores.answers``.

    partial
        True for baselines in the data, which may lack predictions for some numbers. These numbers
        are skipped instead of being scored with the train mean.
    """

    name: str
    answers: Predictions
    partial: bool = False


class BaselineScores(NamedTuple):
    """Metrics of baselines: those of :class:`Report` with the same names."""

    baselines: dict[str, Figures]
    target_baselines: dict[str, dict[str, Figures]]
    best_baselines: dict[str, BestBaseline]


def baseline_scores(
    few: Sequence[Metric],
    more: Sequence[Metric],
    *,
    scores: Scores,
    baselines: Iterable[BaselineAnswers],
) -> BaselineScores:
    """Return the metrics of each baseline, overall and for each of several targets, and compare the
    model with the best baseline.

    Each baseline has the metrics ``few``, as far as its predictions have what they need, and the
    metrics ``more``.
    """
    every = list(baselines)
    parts = {name: scores.targets == name for name in scores.by_target}

    def metrics_of_rows(rows: Bools) -> dict[str, Figures]:
        found = {}
        for name, baseline, partial in every:
            metrics = [metric for metric in few if metric.missing(baseline) is None]
            chosen = list(dict.fromkeys([*metrics, *more]))
            found[name] = figures(chosen, baseline.take(_covered(baseline, partial) & rows))
        return found

    everywhere = np.ones(len(scores.answers.truth), np.bool_)
    overall = metrics_of_rows(everywhere)
    by_target = {target: metrics_of_rows(rows) for target, rows in parts.items()}
    best = {}
    for target, rows in (parts or {"": everywhere}).items():
        rivals = {
            name: baseline.take(rows)
            for name, baseline, partial in every
            if name not in LIMITS and _covered(baseline, partial)[rows].all()
        }
        metrics_of = by_target[target] if target else overall
        if found := _best_baseline(scores.answers.take(rows), rivals, metrics_of):
            best[target] = found
    return BaselineScores(overall, by_target, best)


def _best_baseline(
    model: Predictions, baselines: Mapping[str, Predictions], metrics_of: Mapping[str, Figures]
) -> BestBaseline | None:
    """Return the best baseline and its paired difference to the model, or None if no baseline has a
    metric that decides.

    All predictions are for the same numbers or labels, in the same order. ``metrics_of`` contains
    the metrics of each baseline.
    """
    for spec in _DECIDING:
        figures = {name: metrics_of[name].get(spec) for name in baselines}
        values = {
            name: figure.value
            for name, figure in figures.items()
            if figure is not None and figure.value is not None
        }
        if values:
            metric = METRICS.build(spec)
            sign = 1 if metric.better == "higher" else -1
            name = max(values, key=lambda each: sign * values[each])
            difference = paired(metric, [model], [baselines[name]]).figure
            return BestBaseline(
                name=name,
                metric=spec,
                value=values[name],
                difference=difference,
                better=_better(difference, sign),
            )
    return None


def _better(difference: Figure, sign: int) -> Literal["model", "baseline"] | None:
    """Return which side is better. ``sign`` is 1 if higher values are better, else -1."""
    ends = [sign * end for end in (difference.low, difference.high) if end is not None]
    if ends and min(ends) > 0:
        return "model"
    return "baseline" if ends and max(ends) < 0 else None


def _covered(baseline: Predictions, partial: bool) -> Bools:
    return baseline.valid if partial else np.ones(len(baseline.valid), np.bool_)


def number_baselines(
    scores: Scores, baselines: Iterable[tuple[str, Floats]], partial: Collection[str] = ()
) -> Iterator[BaselineAnswers]:
    """Convert baseline predictions for numbers, float64[n], to :class:`BaselineAnswers`.

    Predictions that are not finite are invalid and are replaced by ``scores.fallback``. ``partial``
    contains the names of baselines that may lack predictions.
    """
    for name, values in baselines:
        valid = np.isfinite(values)
        literals = [repr(v) if ok else None for v, ok in zip(values.tolist(), valid, strict=True)]
        answers = Predictions(  # without a distribution
            scores.answers.truth,
            np.where(valid, values, np.nan_to_num(scores.fallback)),
            valid,
            scores.answers.truth_literal,
            literals,
            sample=scores.answers.sample,
            field=scores.answers.field,
            field_median=scores.answers.field_median,
        )
        yield BaselineAnswers(name, answers, name in partial)


def _fields(kept: "pa.Table", answers: Predictions) -> dict[str, Ints]:
    """Return the indices of the numbers in each field, keyed by field name.

    Fields are in the order of their first numbers. ``(others)`` is last.
    """
    if not has_fields(kept) or answers.field_median is None:
        return {}
    rows_of = rows_by_value(kept.column(FIELD))
    medians = answers.field_median
    first = {name: (bool(np.isnan(medians[at[0]])), int(at[0])) for name, at in rows_of.items()}
    return {name: rows_of[name] for name in sorted(rows_of, key=lambda name: first[name])}


def _targets(kept: "pa.Table") -> NDArray[np.object_]:
    names = kept.column(TARGET).to_pylist() if TARGET in kept.column_names else [""] * len(kept)
    return np.array(names, object)


def _parts(kept: "pa.Table") -> Iterator[tuple[str, str, Ints]]:
    """Yield each part that is scored separately: group ("" for targets), value, and rows
    int64[k]."""
    groups = [name for name in kept.column_names if name.startswith(GROUP)]
    for column in (*([TARGET] if TARGET in kept.column_names else []), *groups):
        group = column.removeprefix(GROUP) if column in groups else ""
        rows_of = rows_by_value(kept.column(column))
        if (1 if group else 2) <= len(rows_of) <= _MOST_GROUPS:
            yield from ((group, value, rows) for value, rows in rows_of.items())
