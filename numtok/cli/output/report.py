"""What ``report`` and ``eval`` print of one report, and a published table beside it."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from numtok.cli.output.figures import (
    amount,
    duration,
    figure,
    number,
    print_figures,
    print_lines,
    share,
)
from numtok.cli.output.printing import Format, print_data
from numtok.reports import LIMITS

if TYPE_CHECKING:
    from numtok.evaluation.comparison.beside_published import PublishedComparison
    from numtok.evaluation.report_files import Evaluation
    from numtok.reports import Figure, Figures, Labels, Report

# Figures that only a perfect model has, of which skill is made: how much of the way there it went
# from the baseline, which for errors is 1 - error / error of the baseline.
PERFECT = {"mse": 0.0, "accuracy": 1.0, "label-nll": 0.0}
SKILL = "skill is 1 - error / error of the baseline"
SLOT_SKILL = "slot-skill"
_IN_SLOTS = {SLOT_SKILL: "skill", "median-relative-error": "error"}  # short headings
_PARTS_ACROSS = 3  # of a target or group; what fits a narrow terminal beside the names of metrics
_COLUMNS = ("part", "value", "metric", "n", "figure", "low", "high")


def print_report(
    evaluation: "Evaluation",
    format: Format,
    published: "PublishedComparison | None" = None,
    to: TextIO | None = None,
) -> None:
    """Print one report, on stdout by default; CSV has one row a figure, JSON the whole report."""
    report = evaluation.report
    whole: dict[str, Any] = {"ref": evaluation.ref, "report": report, "timing": evaluation.timing}
    whole |= {"published": published} if published else {}
    rows = chain(_flat(report), _flat_costs(evaluation), _flat_published(published))
    if print_data(format, whole, _COLUMNS, rows, to):
        return
    print_lines(list(_head(evaluation)), to)
    _print_metrics(report, format, to)
    if report.slots:
        _print_slots(report.slots, format, to)
    if len(report.by_target) > 1:
        _print_parts("target", report.by_target, format, to)
    for name, values in report.groups.items():
        if len(values) > 1:
            _print_parts(name, values, format, to)
    _print_baselines("baselines", report.metrics, report.baselines, format, to)
    for name, baselines in report.target_baselines.items():
        _print_baselines(
            f"baselines of target {name}", report.by_target[name], baselines, format, to
        )
    if report.labels is not None:
        _print_confusion(report.labels, format, to)
    _print_costs(evaluation, format, to)
    if report.notes:
        print_lines([f"Note: {note}" for note in report.notes], to)
    if published:
        print_published(published, format, to)


def print_published(
    published: "PublishedComparison", format: Format, to: TextIO | None = None
) -> None:
    """Published numbers beside measured ones, what differs, and the doubts; for people."""
    several = len({one.label for one in published.cells}) > 1
    rows: list[tuple[str, ...]] = []
    footnotes = []
    for index, one in enumerate(published.cells):
        measured = figure(one.measured)
        if one.invalid or (one.cell is not None and one.cell.invalid and one.invalid is not None):
            measured += f" ({share(one.invalid)} invalid)"
        if several and (not index or published.cells[index - 1].label != one.label):
            rows.append((one.label, "", "", ""))
        printed = "-"
        if one.cell is not None:
            invalid = f" ({share(float(one.cell.invalid))} invalid)" if one.cell.invalid else ""
            mark = " †" if one.cell.footnote else ""
            spread = "" if one.cell.deviation is None else f" ± {one.cell.deviation}"
            printed = f"{one.cell.value}{spread}{mark}{invalid}"
            if one.cell.footnote:
                footnotes.append(f"† {one.column}: {one.cell.footnote}.")
        rows.append(
            (
                f"  {one.column}" if several else one.column,
                one.metric,
                measured,
                printed,
            )
        )
    title = f"beside {published.table}: {published.source}"
    print_figures(title, ("column", "metric", "measured", "printed"), rows, format, to)
    if any(one.where is None for one in published.cells):
        footnotes.append("Measured over all numbers of the report.")
    if any(one.invalid is not None for one in published.cells):
        footnotes.append(
            "Invalid: what is no number without constrained decoding, as in the paper."
        )
    lines = [published.caption, *footnotes]
    lines += [f"Differs: {sentence}" for sentence in published.differs]
    print_lines([*lines, *(f"Doubt: {sentence}" for sentence in published.doubts)], to)


def _head(evaluation: "Evaluation") -> Iterator[str]:
    report = evaluation.report
    yield f"report {evaluation.ref}: {report.scheme}, seed {report.seed}"
    yield f"model {report.model} on split {report.split} of {report.data}"
    rows, decoding = f"{report.rows:,} rows, {report.numbers:,}", _words(report.decoding)
    if report.labels is not None:
        yield f"{rows} with a label; {len(report.labels.classes):,} classes; {decoding}"
    elif report.texts is not None:
        lost = f"{share(report.invalid)} have not the form that was asked for"
        yield f"{rows} answers; {decoding}; {lost}"
        if report.texts.stopped:
            yield f"{report.texts.stopped:,} did not end within {report.texts.longest:,} tokens"
    else:
        yield f"{rows} numbers; {decoding}"
        lost = f"{share(report.invalid)} of the numbers have no valid prediction"
        if report.invalid:
            lost += f"; those count as the train mean, {number(report.train_mean)}"
        yield lost
        if report.off_grammar is not None:
            yield f"{share(report.off_grammar)} would be no number without constrained decoding"
    yield f"configuration: {_words(report.configuration)}"


def _words(settings: Mapping[str, Any]) -> str:
    """``{"head": "mdn:10", "constrained": True} -> "head mdn:10, constrained yes"``"""
    plain = {True: "yes", False: "no", None: "-"}
    return ", ".join(
        f"{key} {plain[value] if value is None or isinstance(value, bool) else value}"
        for key, value in settings.items()
    )


def _print_metrics(report: "Report", format: Format, to: TextIO | None) -> None:
    """The figures over all numbers, and those over the valid ones where they differ."""
    columns = ["metric", "n", f"all {report.measures}"]
    rows = [[name, f"{found.n:,}", figure(found)] for name, found in report.metrics.items()]
    if report.valid_metrics:
        columns.append("valid ones alone")
        for row in rows:
            row.append(figure(report.valid_metrics.get(row[0])))
    print_figures(_title(report.metrics), columns, rows, format, to)


def _title(metrics: "Figures") -> str:
    title = "figures with 95% bootstrap intervals"
    shares = [found for found in metrics.values() if found.value in (0.0, 1.0)]
    if any(found.low != found.high for found in shares):
        title += "; shares of 0 or 1 with Wilson's"
    return title


def _print_parts(
    name: str, parts: "Mapping[str, Figures]", format: Format, to: TextIO | None
) -> None:
    """A column for each part, to compare their metrics at a glance; of many parts a row each."""
    metrics = dict.fromkeys(metric for figures in parts.values() for metric in figures)
    rows = [
        [part, f"{_count(found):,}", *(figure(found.get(metric)) for metric in metrics)]
        for part, found in parts.items()
    ]
    table = [[name, "n", *metrics], *rows]
    if len(parts) <= _PARTS_ACROSS:
        table = [list(row) for row in zip(*table, strict=True)]
        table[0][0] = "metric"
    print_figures(f"by {name}", table[0], table[1:], format, to)


def _print_slots(slots: "Mapping[str, Figures]", format: Format, to: TextIO | None) -> None:
    """A row for each slot; skill alone with its interval, so that a line holds all figures."""
    metrics = dict.fromkeys(metric for figures in slots.values() for metric in figures)
    rows = [
        [
            slot,
            f"{_count(found):,}",
            *(
                figure(found[metric]) if metric == SLOT_SKILL else number(_value(found, metric))
                for metric in metrics
            ),
        ]
        for slot, found in slots.items()
    ]
    title = (
        "by slot: skill is 1 - mae / mae of the slot's median in the train split, at least -1; "
        "error is the median relative one"
    )
    columns = ["slot", "n", *(_IN_SLOTS.get(metric, metric) for metric in metrics)]
    print_figures(title, columns, rows, format, to)


def _print_baselines(
    what: str,
    own: "Figures",
    baselines: "Mapping[str, Figures]",
    format: Format,
    to: TextIO | None,
) -> None:
    """The model's figures beside those that need no model, and its skill over them."""
    metrics = [name for name in own if any(name in baseline for baseline in baselines.values())]
    numbers = _count(own)
    rows = [
        [name, number(_value(own, name))]
        + [number(_value(baseline, name)) for baseline in baselines.values()]
        for name in metrics
    ]
    rows += [
        [f"skill by {name}", ""]
        + [
            skill(name, _value(own, name), baseline.get(name))
            # Another part of the numbers may be harder, and the truth cannot be beaten.
            if name in baseline and baseline[name].n == own[name].n and of not in LIMITS
            else "-"
            for of, baseline in baselines.items()
        ]
        for name in PERFECT
        if name in metrics
    ]
    if rows:
        limits = [name for name in baselines if name in LIMITS]
        kind = "limits" if len(limits) > 1 else "a limit"
        verb = "are" if len(limits) > 1 else "is"
        made = f" ({' and '.join(limits)} {verb} {kind}, made of the truth)" if limits else ""
        title = f"{what}, which need no model{made}; {SKILL}"
        names = [f"{name}{of_some(baseline, numbers)}" for name, baseline in baselines.items()]
        print_figures(title, ["metric", "model", *names], rows, format, to)


def of_some(baseline: "Figures", numbers: int) -> str:
    """`` (52%)`` where a baseline's figures are of so many of the numbers alone, else nothing."""
    return "" if _count(baseline) == numbers else f" ({share(_count(baseline) / numbers)})"


def _count(figures: "Figures") -> int:
    return max((figure.n for figure in figures.values()), default=0)


def skill(metric: str, own: float | None, of_baseline: "Figure | None") -> str:
    """How much of the way from the baseline to a perfect model a figure is; ``-`` where one of them
    is not known or the baseline cannot be told from perfect, which is in its interval.

    >>> from numtok.reports import Figure
    >>> skill("mse", 1.0, Figure(4.0, 3.0, 5.0, 90))
    '0.75'
    >>> skill("accuracy", 0.9, Figure(0.99, 0.97, 1.0, 90))
    '-'
    """
    perfect = PERFECT[metric]
    if own is None or of_baseline is None or of_baseline.value in (None, perfect):
        return "-"
    if perfect in (of_baseline.low, of_baseline.high):
        return "-"
    return number(1 - (own - perfect) / (of_baseline.value - perfect))


def _print_confusion(labels: "Labels", format: Format, to: TextIO | None) -> None:
    """A row for each true label, a column for each prediction; the errors alone of many labels."""
    if not labels.complete:
        pairs = [[one.truth, one.predicted, f"{one.rows:,}"] for one in labels.confusion]
        title = "the most frequent errors"
        print_figures(title, ["label", "predicted", "rows"], pairs, format, to)
        return
    names = dict.fromkeys([*labels.classes, *(one.truth for one in labels.confusion)])
    counts = {(one.truth, one.predicted): one.rows for one in labels.confusion}
    rows = [
        [truth, *(f"{counts.get((truth, predicted), 0):,}" for predicted in labels.classes)]
        for truth in names
    ]
    title = "rows of each label (down) by prediction (across)"
    print_figures(title, ["label", *labels.classes], rows, format, to)


def _value(figures: "Figures", metric: str) -> float | None:
    return figures[metric].value if metric in figures else None


def _print_costs(evaluation: "Evaluation", format: Format, to: TextIO | None) -> None:
    costs, timing = evaluation.report.costs, evaluation.timing
    rows = [
        ["samples", amount(costs.samples)],
        ["tokens", amount(costs.tokens)],
        ["steps", amount(costs.steps)],
        ["FLOPs of training", number(costs.flops)],
        ["parameters", amount(costs.parameters)],
        ["  in embeddings", amount(costs.embedding_parameters)],
        ["tokens per number", number(costs.tokens_per_number)],
        ["training", duration(timing.train_seconds)],
        ["evaluation", duration(timing.eval_seconds)],
    ]
    print_figures("costs", ["what", "amount"], rows, format, to)


def _flat(report: "Report") -> Iterator[tuple[object, ...]]:
    """Every figure as a row of :data:`_COLUMNS`."""
    parts: list[tuple[str, str | None, Figures]] = [("all", None, report.metrics)]
    parts.append(("valid", None, report.valid_metrics))
    parts += [("slot", name, figures) for name, figures in report.slots.items()]
    parts += [("target", name, figures) for name, figures in report.by_target.items()]
    parts += [
        (f"group {name}", value, figures)
        for name, values in report.groups.items()
        for value, figures in values.items()
    ]
    parts += [("baseline", name, figures) for name, figures in report.baselines.items()]
    parts += [
        (f"baseline of target {target}", name, figures)
        for target, baselines in report.target_baselines.items()
        for name, figures in baselines.items()
    ]
    for part, value, figures in parts:
        for metric, one in figures.items():
            yield part, value, metric, one.n, one.value, one.low, one.high
    if report.labels is not None:
        for pair in report.labels.confusion:
            told = f"{pair.truth} predicted {pair.predicted}"
            yield "confusion", told, "rows", report.numbers, pair.rows, None, None
        return
    for what, one_share in (("invalid", report.invalid), ("off-grammar", report.off_grammar)):
        yield "all", None, what, report.numbers, one_share, None, None


def _flat_costs(evaluation: "Evaluation") -> Iterator[tuple[object, ...]]:
    import msgspec

    for one in (evaluation.report.costs, evaluation.timing):
        for what, value in msgspec.structs.asdict(one).items():
            yield "cost", None, what.replace("_", "-"), None, value, None, None


def _flat_published(published: "PublishedComparison | None") -> Iterator[tuple[object, ...]]:
    for one in published.cells if published else []:
        value = None if one.cell is None else float(one.cell.value)
        table = published.table if published else ""
        yield f"printed in {table}", one.column, one.metric, None, value, None, None
