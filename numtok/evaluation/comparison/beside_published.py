"""A published number beside the measured one."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import msgspec

from numtok.data.reading.split_rule import SHIFTED
from numtok.errors import UsageError
from numtok.evaluation.comparison.seeds import SeedStatistics, bootstrapped, seed_statistics
from numtok.evaluation.published import Cell, Column, PublishedTable, published
from numtok.evaluation.report_files import Evaluation, ReportPredictions, left_alone
from numtok.metrics.base import METRICS, Predictions
from numtok.registry import name_in, spec_of
from numtok.reports import Figure, Figures, Report

#: Columns that are not metrics but what a model costs, which is never below zero.
_COSTS = ("tokens-per-number", "train-hours")


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a published table beside what was measured.

    ``measured`` is None where the reports have no such figure, ``cell`` where
    the table has none; ``where`` is the group measured, None for all numbers.
    ``invalid`` is the share of the numbers measured that a model left to itself says as no number,
    None where the table prints no such shares: without the grammar of constrained decoding, under
    which there can be none.
    """

    label: str
    column: str
    metric: str
    where: str | None
    measured: SeedStatistics | None
    cell: Cell | None
    invalid: float | None = None


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Some cells of a published table, what is known to differ, and what is doubtful."""

    table: str
    source: str
    caption: str
    cells: list[Beside]
    differs: list[str]
    doubts: list[str]


def beside_published(
    name: str,
    experiments: Sequence[tuple[str, Sequence[Evaluation]]],
    *,
    row: str | None = None,
    column: str | None = None,
) -> PublishedComparison:
    """Published numbers beside the reports of some experiments, given with their labels.

    The row is that of the data set (``airfoil`` for ``uci-airfoil``), of the preset or of the
    scheme unless named, and then it has to be there. The columns are those whose group the reports
    have, ``operands`` is 2 for the column "2 operands" of ``xval/table3``, or whose target, data or
    kind of head; and those of whole reports whose metric no other column has. One that is named is
    put beside the figure of its group or target, or beside that of all numbers where the reports
    have none.

    Raises UsageError for an unknown table, row or column, and where no column fits.
    """
    table = published(name)
    reports = [evaluation.report for _, group in experiments for evaluation in group]
    columns = _columns(table, reports) if column is None else [table.column(column)]
    if not columns:
        raise UsageError(
            f"--against {name}: the reports have none of its groups, targets, data or heads; name "
            "a column with --column: " + ", ".join(one.name for one in table.columns)
        )
    by_ref = {one.ref: one for _, group in experiments for one in group}
    shares = cache(lambda ref: left_alone(by_ref[ref]))  # predictions are read once
    cells: list[Beside] = []
    for label, group in experiments:
        report = group[0].report
        printed = table.rows.get(_row(table, report), {}) if row is None else table.row(row)
        for one in columns:
            if column is None and one.head is not None and _part(report, one) is None:
                continue
            measured = _measured(group, one)
            is_shown = table.prints_invalid and measured is not None
            beside = Beside(
                label=label,
                column=one.name,
                metric=one.metric,
                where=None if _part(report, one) is None else _where(one),
                measured=measured,
                cell=printed.get(one.name),
                invalid=_invalid(group, one, shares) if is_shown else None,
            )
            cells.append(beside)
    differs = [
        f"{key} is {here} for {label}, in the paper {there}."
        for label, group in experiments
        for key, here, there in _differing(table, group[0].report, row)
    ]
    return PublishedComparison(
        table=name,
        source=table.source,
        caption=table.caption,
        cells=cells,
        differs=differs,
        doubts=table.doubts,
    )


def _columns(table: PublishedTable, reports: Sequence[Report]) -> list[Column]:
    """Return the columns that have a figure in one of the reports."""
    times = Counter(one.metric for one in table.columns)
    return [
        one
        for one in table.columns
        if (one.is_of_all and times[one.metric] == 1)
        or any(_part(report, one) is not None for report in reports)
    ]


def _row(table: PublishedTable, report: Report) -> str:
    """The row that a report belongs into: of its data set, preset, embedder or scheme."""
    data = report.data.partition("@")[0]
    sets = (name for name in table.rows if data == name or data.endswith(f"-{name}"))
    scheme = name_in(report.scheme)
    parts = (str(report.configuration.get(key)).partition(",")[0] for key in ("preset", "embedder"))
    known = (table.row_of[one] for one in (*parts, scheme) if one in table.row_of)
    row = next(sets, next(known, scheme))
    return f"{row}-pretrained" if "init.objective" in report.configuration else row


def _where(column: Column) -> str:
    parts = {"data": column.data, "head": column.head, "target": column.target}
    parts |= {"split": column.split} | column.group
    parts = {key: value for key, value in parts.items() if value is not None}
    return ", ".join(f"{name}={value}" for name, value in parts.items())


def _part(report: Report, column: Column) -> Figures | None:
    """The figures of the column's target or group, or all of a report of its data or its kind of
    head; None where the report has no such thing, or the column names none."""
    if column.target is not None:
        shifted = report.split if report.split.startswith(SHIFTED) else None
        return report.by_target.get(column.target) if column.split == shifted else None
    if column.data is not None:
        name = report.data.partition("@")[0]
        return report.metrics if f"{name}-".startswith(f"{column.data}-") else None
    if column.head is not None:
        head = str(report.configuration.get("head", report.scheme))  # of tables that is the scheme
        is_of_kind = head == column.head or head.startswith((f"{column.head}:", f"{column.head},"))
        return report.metrics if is_of_kind else None
    if column.group:
        [(name, value)] = column.group.items()
        return report.groups.get(name, {}).get(value)
    return None


def _measured(group: Sequence[Evaluation], column: Column) -> SeedStatistics | None:
    figures = [_figure(evaluation, column) for evaluation in group]
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures):
        return None
    if column.metric in _COSTS:
        return seed_statistics(known, (0.0, math.inf))
    metric = METRICS.build(column.metric)
    if len(known) == 1:  # which has the interval of the bootstrap already
        return seed_statistics(known, metric.bounds, share=metric.share)
    seeds = [_answers(evaluation, column) for evaluation in group]
    return bootstrapped([metric], seeds)[spec_of(metric)]


def _answers(evaluation: Evaluation, column: Column) -> Predictions:
    """Predictions of the target or group that :func:`_figure` reads."""
    predictions = ReportPredictions.read(evaluation)
    if _part(evaluation.report, column) is not None:
        if column.target is not None:
            return predictions.of_target(column.target).answers
        if column.group:
            [(name, value)] = column.group.items()
            return predictions.answers.take(predictions.groups(name)[value])
    return predictions.answers


def _figure(evaluation: Evaluation, column: Column) -> Figure | None:
    report, seconds = evaluation.report, evaluation.timing.train_seconds
    if column.metric == "tokens-per-number":
        return Figure(report.costs.tokens_per_number, None, None, report.numbers)
    if column.metric == "train-hours":
        return None if seconds is None else Figure(seconds / 3600, None, None, report.rows)
    part = _part(report, column)
    return (report.metrics if part is None else part).get(column.metric)


def _invalid(
    group: Sequence[Evaluation], column: Column, shares: Callable[[str], Mapping[str | None, float]]
) -> float:
    """Return the mean over the reports of the fraction of outputs that are not a number, which
    ``shares`` gives by REF and target."""
    found = [
        shares(one.ref)[None if _part(one.report, column) is None else column.target]
        for one in group
    ]
    return math.fsum(found) / len(found)


def _differing(
    table: PublishedTable, report: Report, row: str | None
) -> Iterator[tuple[str, str, str]]:
    """Of each setting that differs from what the paper states its name, what it is here, and
    there."""
    exact = table.row_setup.get(_row(table, report) if row is None else row, {})
    for key, there in (table.setup | exact).items():
        here = str(report.configuration.get(key, "not stated"))
        if here != there if key in exact else not _has(here, there):
            yield key, here, there


def _has(here: str, there: str) -> bool:
    """Whether a spec has all that another one states, and perhaps more.

    >>> _has("mlm:tokens,rate=0.15", "mlm:tokens"), _has("mlm:targets", "mlm:tokens")
    (True, False)
    """
    return set(there.split(",")) <= set(here.split(","))
