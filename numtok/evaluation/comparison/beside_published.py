"""Comparison of published numbers with measured ones."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import msgspec

from numtok.data.reading.split_rule import SHIFTED
from numtok.errors import UsageError
from numtok.evaluation.comparison.seeds import SeedStatistics, bootstrapped, seed_statistics
from numtok.evaluation.published import Cell, Column, PublishedTable, published
from numtok.evaluation.report_files import Evaluation, ReportPredictions, invalid_fractions
from numtok.metrics.base import METRICS, Predictions
from numtok.registry import name_in, spec_of
from numtok.reports import Figure, Figures, Report

#: Columns that are costs rather than metrics. Costs are never negative.
_COSTS = ("tokens-per-number", "train-hours")


class ComparedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a published table, with the measured value.

    where
        Part of the data that the measured value covers, such as ``operands=2``; None for all
        numbers.
    measured
        Measured value; None if the reports lack the metric.
    cell
        Published value; None if the table lacks it.
    invalid
        Measured fraction of outputs that would not be numbers without constrained decoding; None if
        nothing was measured, or if the published table does not include such fractions.
    """

    label: str
    column: str
    metric: str
    where: str | None
    measured: SeedStatistics | None
    cell: Cell | None
    invalid: float | None


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a published table with measured values.

    differs
        Settings that differ from the paper, one sentence each.
    doubts
        Reasons why values may not be comparable, one sentence each.
    """

    table: str
    source: str
    caption: str
    cells: list[ComparedCell]
    differs: list[str]
    doubts: list[str]


def beside_published(
    name: str,
    experiments: Sequence[tuple[str, Sequence[Evaluation]]],
    *,
    row: str | None = None,
    column: str | None,
) -> PublishedComparison:
    """Compare a published table with experiments. Each experiment is given as its label and its
    reports.

    name
        Name of the published table, such as ``xval/table3``.
    row
        Row of the table. By default, the row that is named after the data set (``airfoil`` for
        ``uci-airfoil``), the preset, the embedder or the scheme.
    column
        Column of the table. Its values are compared with the metric of its group or target, or with
        the metric over all numbers if the reports lack that group or target. By default, a column
        is compared if its group, target, data or kind of head occurs in the reports (column "2
        operands" of ``xval/table3`` has the group ``operands=2``), or if it covers all numbers
        and no other column has the same metric.

    Raises UsageError for an unknown table, row or column, and if no column applies.
    """
    table = published(name)
    reports = [evaluation.report for _, group in experiments for evaluation in group]
    columns = columns_for(table, reports) if column is None else [table.column(column)]
    if not columns:
        raise UsageError(
            f"--against {name}: the reports have none of its groups, targets, data or heads. "
            "Choose a column with --column: "
            + ", ".join(candidate.name for candidate in table.columns)
        )
    by_ref = {evaluation.ref: evaluation for _, group in experiments for evaluation in group}
    shares = cache(lambda ref: invalid_fractions(by_ref[ref]))  # predictions are read once
    cells: list[ComparedCell] = []
    for label, group in experiments:
        report = group[0].report
        printed = table.rows.get(row_of(table, report), {}) if row is None else table.row(row)
        for candidate in columns:
            if column is None and candidate.head is not None and _part(report, candidate) is None:
                continue
            measured = _measured(group, candidate)
            is_shown = table.prints_invalid and measured is not None
            cell = ComparedCell(
                label=label,
                column=candidate.name,
                metric=candidate.metric,
                where=None if _part(report, candidate) is None else _part_name(candidate),
                measured=measured,
                cell=printed.get(candidate.name),
                invalid=_invalid(group, candidate, shares) if is_shown else None,
            )
            cells.append(cell)
    differs = [
        f"{key} is {own_value} for {label}, but {published_value} in the paper."
        for label, group in experiments
        for key, own_value, published_value in differing(table, group[0].report, row)
    ]
    return PublishedComparison(
        table=name,
        source=table.source,
        caption=table.caption,
        cells=cells,
        differs=differs,
        doubts=table.doubts,
    )


def columns_for(table: PublishedTable, reports: Sequence[Report]) -> list[Column]:
    """Return the columns for which at least one report has a value."""
    times = Counter(column.metric for column in table.columns)
    return [
        column
        for column in table.columns
        if (column.is_of_all and times[column.metric] == 1)
        or any(_part(report, column) is not None for report in reports)
    ]


def row_of(table: PublishedTable, report: Report) -> str:
    """Return the row of a report, which is named after its data set, preset, embedder or scheme."""
    data = report.data.partition("@")[0]
    scheme = name_in(report.scheme)
    # Encoded data are named after their scheme, which is not a data set.
    data = data.removesuffix(f"-{scheme}")
    sets = (name for name in table.rows if data == name or data.endswith(f"-{name}"))
    parts = (str(report.configuration.get(key)).partition(",")[0] for key in ("preset", "embedder"))
    names = (table.row_of[part] for part in (*parts, scheme) if part in table.row_of)
    row = next(sets, next(names, scheme))
    return f"{row}-pretrained" if "init.objective" in report.configuration else row


def _part_name(column: Column) -> str:
    parts = {"data": column.data, "head": column.head, "target": column.target}
    parts |= {"split": column.split} | column.group
    parts = {key: value for key, value in parts.items() if value is not None}
    return ", ".join(f"{name}={value}" for name, value in parts.items())


def _part(report: Report, column: Column) -> Figures | None:
    """Return the metrics of the part of the report that the column describes.

    The part is a target, a group, or the whole report if its data or kind of head match. Returns
    None if the report lacks the part, or if the column does not describe a part.
    """
    if column.target is not None:
        shifted = report.split if report.split.startswith(SHIFTED) else None
        return report.by_target.get(column.target) if column.split == shifted else None
    if column.data is not None:
        name = report.data.partition("@")[0]
        return report.metrics if f"{name}-".startswith(f"{column.data}-") else None
    if column.head is not None:
        head = str(report.configuration.get("head", report.scheme))  # a table's scheme is its head
        is_of_kind = head == column.head or head.startswith((f"{column.head}:", f"{column.head},"))
        return report.metrics if is_of_kind else None
    if column.group:
        [(name, value)] = column.group.items()
        return report.groups.get(name, {}).get(value)
    return None


def _measured(group: Sequence[Evaluation], column: Column) -> SeedStatistics | None:
    figures = [figure_of(evaluation, column) for evaluation in group]
    available = [figure for figure in figures if figure is not None]
    if len(available) < len(figures):
        return None
    if column.metric in _COSTS:
        return seed_statistics(available)
    metric = METRICS.build(column.metric)
    if len(available) == 1:  # it already has a bootstrap interval
        return seed_statistics(available, share=metric.share)
    seeds = [_answers(evaluation, column) for evaluation in group]
    return bootstrapped([metric], seeds)[spec_of(metric)]


def _answers(evaluation: Evaluation, column: Column) -> Predictions:
    """Return the predictions from which :func:`figure_of` takes its value."""
    predictions = ReportPredictions.read(evaluation)
    if _part(evaluation.report, column) is not None:
        if column.target is not None:
            return predictions.of_target(column.target).answers
        if column.group:
            [(name, value)] = column.group.items()
            return predictions.answers.take(predictions.groups(name)[value])
    return predictions.answers


def figure_of(evaluation: Evaluation, column: Column) -> Figure | None:
    """Return the value of a column in a report; None if the report lacks it."""
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
    """Return the fraction of outputs that are not numbers, averaged over the reports.

    ``shares`` returns the fractions for a REF, keyed by target.
    """
    fractions = [
        shares(evaluation.ref)[None if _part(evaluation.report, column) is None else column.target]
        for evaluation in group
    ]
    return math.fsum(fractions) / len(fractions)


def differing(
    table: PublishedTable, report: Report, row: str | None
) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that differs from the paper: its name, its value here and its value in the
    paper."""
    exact = table.row_setup.get(row_of(table, report) if row is None else row, {})
    for key, stated in (table.setup | exact).items():
        own = str(report.configuration.get(key, "not stated"))
        if own != stated if key in exact else not _contains(own, stated):
            yield key, own, stated


def _contains(own: str, stated: str) -> bool:
    """Return whether a spec contains all parts of another one, and possibly more.

    >>> _contains("mlm:tokens,rate=0.15", "mlm:tokens"), _contains("mlm:targets", "mlm:tokens")
    (True, False)
    """
    return set(stated.split(",")) <= set(own.split(","))
