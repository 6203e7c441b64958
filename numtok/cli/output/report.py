"""Prints a report, optionally together with a published table."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import asdict

from numtok.cli.output.figures import (
    Formatted,
    amount,
    difference,
    duration,
    ends,
    metric_cells,
    number,
    share,
)
from numtok.cli.output.printing import Format, Part, Sheet, print_result
from numtok.evaluation.comparison.beside_published import ComparedCell, PublishedComparison
from numtok.evaluation.comparison.experiments import option_of
from numtok.evaluation.report_files import Evaluation
from numtok.names import counted
from numtok.reports import LIMITS, BestBaseline, Figure, Figures, Labels, Report

# Values of a perfect model. Skill is the fraction of the way from the baseline to this value; for
# errors, that is 1 - error / error of the baseline.
PERFECT = {"mse": 0.0, "accuracy": 1.0, "label-nll": 0.0}
SKILL = "skill is 1 - error / error of the baseline"
FIELD_SKILL = "field-skill"
_HEADLINES = 8  # metrics that are shown by default
#: Metrics, the most informative first. The first eight that a report has are shown by default.
_BY_RANK = (
    FIELD_SKILL, "accuracy", "macro-f1", "answer-exact-match", "answer-digit-match", "answered",
    "r2", "signed-log-r2", "mae", "median-relative-error", "relative-error-over",
    "exact-match,digits=3", "mse", "crps", "nll", "coverage",
)  # fmt: skip
_IN_FIELDS = {FIELD_SKILL: "skill", "median-relative-error": "error"}  # short headings
#: Headings of decoding options, where their names are not plain.
_DECODING = {"fill": "fill order", "decode": "decoding", "point": "point prediction"}
#: What the side that is better than the other, model or baseline, means for the model.
_VERDICTS = {
    "model": "The model beats it.",
    "baseline": "The model does not beat it: the baseline is better.",
    None: "The model does not beat it: the difference is within noise.",
}
_PARTS_ACROSS = 3  # of a target or group; as many as fit a narrow terminal
_COLUMNS = ("part", "value", "metric", "n", "figure", "low", "high")


def print_report(
    evaluation: Evaluation,
    format: Format,
    published: PublishedComparison | None = None,
    *,
    made: str | None = None,
    quiet: bool = False,
    all_metrics: bool = True,
) -> None:
    """Print a report; CSV has one row per value.

    published
        Published table to print along with the results.
    made, quiet
        See :func:`print_result`.
    all_metrics
        False to show only eight headline metrics, except in JSON and CSV.
    """
    report = evaluation.report
    whole: dict[str, Any] = {"ref": evaluation.ref, "report": report, "timing": evaluation.timing}
    records = [*_records(report), *_costs_records(evaluation)]
    parts = report_parts(evaluation, all_metrics=all_metrics)
    if published:
        whole["published"] = published
        records += published_records(published)
        parts = chain(parts, published_parts(published))
    following = [f"numtok compare {shlex.quote(evaluation.ref.partition('@')[0])} OTHER"]
    print_result(
        format, whole, _COLUMNS, records, parts, made=made, following=following, quiet=quiet
    )


def report_parts(evaluation: Evaluation, *, all_metrics: bool = True) -> Iterator[Part]:
    """Yield the tables of a report, with the table of costs last, followed by notes."""
    report = evaluation.report
    shown = [*report.metrics] if all_metrics else headline_metrics(report)
    yield list(_head(evaluation))
    yield _metrics(report, shown)
    if report.fields:
        yield _fields(report.fields)
    if len(report.by_target) > 1:
        yield _across("target", report.by_target, shown)
    for name, values in report.groups.items():
        if len(values) > 1:
            yield _across(name, values, shown)
    best = report.best_baselines
    yield from _baselines("baselines", report.metrics, report.baselines, shown, best.get(""))
    for name, baselines in report.target_baselines.items():
        own, what = report.by_target[name], f"baselines of target {name}"
        yield from _baselines(what, own, baselines, shown, best.get(name))
    if report.labels is not None:
        yield _confusion(report.labels)
    yield _costs(evaluation)
    yield [f"Note: {note}" for note in report.notes]
    if hidden := len(report.metrics) - len(shown):
        name = evaluation.ref.partition("@")[0]
        yield [f"{counted(hidden, 'more metric')}: numtok report {name} --all-metrics"]


def headline_metrics(report: Report) -> list[str]:
    """Return the names of the most informative metrics, at most eight, in the order in which
    the report lists them.

    Metrics in :data:`_BY_RANK` come first. If a report has fewer than eight of them, others are
    added.
    """
    ranked = dict.fromkeys(
        [*(name for name in _BY_RANK if name in report.metrics), *report.metrics]
    )
    chosen = list(ranked)[:_HEADLINES]
    return [name for name in report.metrics if name in chosen]


def published_parts(published: PublishedComparison) -> Iterator[Part]:
    """Yield a table of published and measured values side by side, then notes on settings
    that differ from the paper and on values that may not be comparable."""
    several = len({one.label for one in published.cells}) > 1
    rows: list[tuple[str, ...]] = []
    footnotes = []
    for index, one in enumerate(published.cells):
        if several and (not index or published.cells[index - 1].label != one.label):
            rows.append((one.label, "", "", ""))
        name = f"  {one.column}" if several else one.column
        rows.append((name, one.metric, *_published_cells(one)))
        if one.cell is not None and one.cell.footnote:
            footnotes.append(f"† {one.column}: {one.cell.footnote}.")
    title = f"next to {published.table}: {published.source}"
    yield Sheet(title, ("column", "metric", "measured", "printed"), rows)
    if any(one.where is None for one in published.cells):
        footnotes.append("Measured over all numbers of the report.")
    if any(one.invalid is not None for one in published.cells):
        footnotes.append(
            "Invalid: predictions that are not a number without constrained decoding, as in the "
            "paper."
        )
    lines = [published.caption, *footnotes]
    lines += [f"Differs: {sentence}" for sentence in published.differs]
    yield [*lines, *(f"Doubt: {sentence}" for sentence in published.doubts)]


def _published_cells(pair: ComparedCell) -> tuple[str, str]:
    """Return what was measured, and what was printed."""
    _, (measured,), _ = metric_cells(pair.metric, [pair.measured], score_is_plain=True)
    if pair.invalid or (pair.cell is not None and pair.cell.invalid and pair.invalid is not None):
        measured = measured.marked(f" ({share(pair.invalid)} invalid)")
    if pair.cell is None:
        return measured, "-"
    invalid = f" ({share(float(pair.cell.invalid))} invalid)" if pair.cell.invalid else ""
    spread = "" if pair.cell.deviation is None else f" ± {pair.cell.deviation}"
    return measured, f"{pair.cell.value}{spread}{' †' if pair.cell.footnote else ''}{invalid}"


def _head(evaluation: Evaluation) -> Iterator[str]:
    report = evaluation.report
    yield f"report {evaluation.ref}: {report.scheme}, seed {report.seed}"
    yield f"model {report.model} on the {report.split} split of {report.data}"
    rows = counted(report.rows, "row")
    decoding = _words({_DECODING.get(key, key): value for key, value in report.decoding.items()})
    if report.labels is not None:
        classes = f"{len(report.labels.classes):,} classes"
        yield f"{rows}, {report.numbers:,} with a label; {classes}; {decoding}"
    elif report.texts is not None:
        lost = f"{share(report.invalid)} do not have the requested form"
        yield f"{rows}, {counted(report.numbers, 'answer')}; {decoding}; {lost}"
        if report.texts.stopped:
            yield f"{report.texts.stopped:,} were cut off after {report.texts.longest:,} tokens"
    else:
        yield f"{rows}, {counted(report.numbers, 'number')}; {decoding}"
        if report.invalid:
            yield (
                f"invalid predictions: {share(report.invalid)}; they count as the training mean, "
                f"{number(report.train_mean)}"
            )
        if report.off_grammar:
            yield f"invalid without constrained decoding: {share(report.off_grammar)}"
    settings = {option_of(key): value for key, value in report.configuration.items()}
    yield f"settings: {_words(settings)}"


def _words(settings: Mapping[str, Any]) -> str:
    """Format settings: ``{"head": "mdn:10", "constrained": True} -> "head: mdn:10; constrained:
    yes"``"""
    plain = {True: "yes", False: "no", None: "-"}
    return "; ".join(
        f"{key}: {plain[value] if value is None or isinstance(value, bool) else value}"
        for key, value in settings.items()
    )


def _metrics(report: Report, shown: Sequence[str]) -> Sheet:
    """Return a table of the metrics over all numbers, and over valid predictions if they differ."""
    columns = ["metric", "n", f"all {report.measures}"]
    if report.valid_metrics:
        columns.append("valid only")
    rows: list[list[object]] = []
    for name in shown:
        measured = report.metrics[name]
        valid = [report.valid_metrics.get(name)] if report.valid_metrics else []
        heading, cells, _ = metric_cells(name, [measured, *valid])
        rows.append([heading, measured.n, *cells])
    title = "metrics with 95% bootstrap intervals"
    extreme = [found for found in report.metrics.values() if found.value in (0.0, 1.0)]
    if any(found.low != found.high for found in extreme):
        title += " (Wilson intervals for 0% and 100%)"
    return Sheet(title, columns, rows)


def _across(name: str, parts: Mapping[str, Figures], shown: Sequence[str] | None = None) -> Sheet:
    """Return a table of metrics with one column per target or group value, or with one row for each
    if there are many."""
    every = dict.fromkeys(metric for figures in parts.values() for metric in figures)
    metrics = [metric for metric in every if shown is None or metric in shown]
    lines: list[list[object]] = []
    for metric in metrics:
        heading, cells, _ = metric_cells(metric, [found.get(metric) for found in parts.values()])
        lines.append([heading, *cells])
    counts: list[object] = ["n", *(_count(found) for found in parts.values())]
    table: list[list[object]] = [[name, *parts], counts, *lines]
    if len(parts) > _PARTS_ACROSS:
        table = [list(line) for line in zip(*table, strict=True)]
    else:
        table[0][0] = "metric"
    columns, *rows = table
    return Sheet(f"by {name}", [*map(str, columns)], rows)


def _fields(fields: Mapping[str, Figures]) -> Sheet:
    """Return a table with one row per field. Only skill has an interval, so that rows stay on one
    line."""
    lines: list[list[Any]] = [["field", *fields], ["n", *map(_count, fields.values())]]
    for metric in dict.fromkeys(metric for figures in fields.values() for metric in figures):
        own = [found.get(metric) for found in fields.values()]
        values = own if metric == FIELD_SKILL else [one.value if one else None for one in own]
        heading, cells, _ = metric_cells(metric, values)
        lines.append([heading.replace(metric, _IN_FIELDS.get(metric, metric)), *cells])
    columns, *rows = zip(*lines, strict=True)
    title = (
        "by field: skill is 1 - MAE / MAE of the field's training median, at least -1; error is "
        "the median relative error"
    )
    return Sheet(title, columns, rows)


def _baselines(
    what: str,
    own: Figures,
    baselines: Mapping[str, Figures],
    shown: Sequence[str],
    best: BestBaseline | None,
) -> Iterator[Sheet]:
    """Yield a table of the metrics of the model and of baselines, with the skill over them, if
    there are any. The note below it names the best baseline."""
    shared = [name for name in own if any(name in baseline for baseline in baselines.values())]
    metrics = [name for name in shown if name in shared]
    if not metrics:
        return
    rows: list[list[object]] = []
    for name in metrics:
        values = [one[name].value if name in one else None for one in baselines.values()]
        heading, (model,), cells = metric_cells(name, [own[name]], values)
        rows.append([heading, model.alone, *cells])
    rows += [
        [f"model's skill ({name})", "", *_skills(name, own, baselines)]
        for name in PERFECT
        if name in shared
    ]
    note = " ".join(f"{name}: {LIMITS[name]}." for name in baselines if name in LIMITS)
    if any("skill" in str(row[0]) for row in rows):
        note = f"{note} {SKILL[:1].upper()}{SKILL[1:]}.".lstrip()
    if best is not None:
        note = f"{best_line(best)}\n{note}"
    numbers = _count(own)
    names = [f"{name}{of_some(baseline, numbers)}" for name, baseline in baselines.items()]
    yield Sheet(what, ["metric", "model", *names], rows, note=note.strip())


def best_line(best: BestBaseline) -> str:
    """Name the best baseline, and say whether the model beats it."""
    _, (value,), _ = metric_cells(best.metric, [best.value], score_is_plain=True)
    apart = difference(best.difference, best.metric, apart=best.better is not None)
    interval = f", 95% interval {apart.ends[0]} to {apart.ends[1]}" if apart.ends else ""
    return (
        f"Best baseline: {best.name} ({best.metric} {value}); model minus baseline: "
        f"{apart.value}{interval}. {_VERDICTS[best.better]}"
    )


def _skills(metric: str, own: Figures, baselines: Mapping[str, Figures]) -> Iterator[Formatted]:
    """Yield the skill over each baseline; ``-`` for limits and for baselines of only some
    numbers."""
    for name, baseline in baselines.items():
        # Other numbers may be harder, and the truth cannot be beaten.
        alike = metric in baseline and baseline[metric].n == own[metric].n
        rival = baseline[metric] if alike and name not in LIMITS else None
        yield skill(metric, own[metric].value, rival)


def of_some(baseline: Figures, numbers: int) -> str:
    """Return the percentage of the numbers that a baseline covers, such as `` (52%)``; an empty
    string if it covers all."""
    return "" if _count(baseline) == numbers else f" ({share(_count(baseline) / numbers)})"


def _count(figures: Figures) -> int:
    return max((figure.n for figure in figures.values()), default=0)


def skill(metric: str, own: float | None, of_baseline: Figure | None) -> Formatted:
    """Return the skill of a model: 1 - error / error of the baseline. The error is the distance
    from the value of a perfect model.

    Returns ``-`` if a value is unknown, or if the baseline's interval includes the perfect value.

    >>> from numtok.reports import Figure
    >>> skill("mse", 1.0, Figure(4.0, 3.0, 5.0, 90))
    '0.75'
    >>> skill("accuracy", 0.9, Figure(0.99, 0.97, 1.0, 90))
    '-'
    """
    perfect = PERFECT[metric]
    if own is None or of_baseline is None or of_baseline.value in (None, perfect):
        return Formatted("-", None)
    if perfect in (of_baseline.low, of_baseline.high):
        return Formatted("-", None)
    return number(1 - (own - perfect) / (of_baseline.value - perfect))


def _confusion(labels: Labels) -> Sheet:
    """Return a table of true labels (rows) by predictions (columns); with many labels, only the
    errors."""
    if not labels.complete:
        rows: list[list[object]] = [
            [one.truth, one.predicted, one.rows] for one in labels.confusion
        ]
        return Sheet("the most frequent errors", ["label", "predicted", "rows"], rows)
    names = dict.fromkeys([*labels.classes, *(pair.truth for pair in labels.confusion)])
    counts = {(one.truth, one.predicted): one.rows for one in labels.confusion}
    rows = [[truth, *(counts.get((truth, one), 0) for one in labels.classes)] for truth in names]
    title = "rows of each label (down) by prediction (across)"
    return Sheet(title, ["label", *labels.classes], rows)


def _costs(evaluation: Evaluation) -> Sheet:
    costs, timing = evaluation.report.costs, evaluation.timing
    rows = [
        ("training examples", amount(costs.samples)),
        ("training tokens", amount(costs.tokens)),
        ("training steps", amount(costs.steps)),
        ("training FLOPs", costs.flops),
        ("parameters", amount(costs.parameters)),
        ("  in embeddings", amount(costs.embedding_parameters)),
        ("tokens per number", costs.tokens_per_number),
        ("training time", duration(timing.train_seconds)),
        ("evaluation time", duration(timing.eval_seconds)),
    ]
    return Sheet("costs", ("item", "value"), rows)


def _records(report: Report) -> Iterator[dict[str, Any]]:
    parts: list[tuple[str, Mapping[Any, Figures]]] = [
        ("all", {None: report.metrics}),
        ("valid", {None: report.valid_metrics}),
        ("field", report.fields),
        ("target", report.by_target),
        *((f"group {name}", values) for name, values in report.groups.items()),
        ("baseline", report.baselines),
        *((f"baseline of target {name}", own) for name, own in report.target_baselines.items()),
    ]
    for part, values in parts:
        for value, figures in values.items():
            for metric, one in figures.items():
                yield {"part": part, "value": value, "metric": metric, "n": one.n} | ends(one)
    n = {"n": report.numbers}
    if report.labels is not None:
        for pair in report.labels.confusion:
            row = {"part": "confusion", "value": f"{pair.truth} predicted {pair.predicted}"}
            yield row | n | {"metric": "rows", "figure": pair.rows}
        return
    for what, one_share in (("invalid", report.invalid), ("off-grammar", report.off_grammar)):
        yield {"part": "all", "metric": what, "figure": one_share} | n


def _costs_records(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    for one in (evaluation.report.costs, evaluation.timing):
        for what, value in asdict(one).items():
            yield {"part": "cost", "metric": what.replace("_", "-"), "figure": value}


def published_records(published: PublishedComparison) -> Iterator[dict[str, Any]]:
    """Yield the published values as CSV rows."""
    for one in published.cells:
        value = None if one.cell is None else float(one.cell.value)
        part = {"part": f"printed in {published.table}", "value": one.column}
        yield part | {"metric": one.metric, "figure": value}
