"""HTML page of a report on the predictions of one model for one split."""

from collections.abc import Iterator, Sequence

import numpy as np

from numtok.analysis.panels.calibration import pit_panel
from numtok.analysis.panels.numbers import SizePanel, lined_up, size_panel, truth_panel
from numtok.analysis.panels.rows import (
    MOST,
    PageRows,
    fields_of,
    page_rows,
    parts_of,
    picks_of,
    standard_errors,
)
from numtok.arrays import Ints
from numtok.cli.output.figures import metric_cells, number, share
from numtok.cli.output.pages.charts import (
    chart,
    coverage_chart,
    learning_charts,
    section,
    size_chart,
)
from numtok.cli.output.pages.page import (
    Headline,
    HeldRow,
    Page,
    PageCell,
    PageChart,
    RowList,
    Section,
)
from numtok.cli.output.pages.parts import LAST, headline, largest_fields, part_filters, size_filters
from numtok.cli.output.printing import Sheet
from numtok.cli.output.report import report_parts
from numtok.data.reading.split_rule import TRAIN
from numtok.evaluation.report_files import Evaluation, ReportPredictions
from numtok.metrics.base import METRICS, Predictions
from numtok.registry import name_in
from numtok.reports import Figures, Report
from numtok.row import GROUP
from numtok.store.artifact import Resolve

_MEANINGS = {
    "field-skill": "1 - error / error of each field's median, averaged over fields",
    "r2": "explained fraction of the variance of true values; 1 is perfect",
    "median-relative-error": "half of the predictions have a smaller relative error",
    "relative-error-over": "predictions with a relative error above 10%",
    "coverage": "true values in the predicted 90% interval; 90% is calibrated",
    "crps": "distance of the predicted distribution, in units of the true value; lower is better",
    "accuracy": "correct labels",
    "answer-exact-match": "answers equal to the true one",
}
_LONG = 12  # numbers with more characters than this are shortened
_BY_PART = ("field-skill", "median-relative-error", "relative-error-over", "mae", "r2")


def report_page(evaluation: Evaluation, resolve: Resolve) -> Page:
    """Return the HTML page of a report. ``resolve`` looks up the report's data and model, if they
    are still in the store."""
    report = evaluation.report
    sections: list[Section] = []
    if report.measures == "numbers":
        sections += _of_numbers(evaluation, resolve)
    *tables, costs = (part for part in report_parts(evaluation) if isinstance(part, Sheet))
    heading = "All metrics and baselines"
    sections.append(Section("figures", heading, "", tables))
    sections.append(Section("costs", "Costs", "", [costs]))
    count = f"{report.numbers:,} {report.measures}"
    where = f"{report.scheme} on {report.data.partition('@')[0]}"
    return Page(
        kicker="numtok report",
        title=f"{where}: {count} of the {report.split} split",
        lead=(
            f"What the model {report.name} (seed {report.seed}) predicts for {count} in "
            f"{report.rows:,} rows{_trained_on(report)}. Intervals are 95% bootstrap "
            "intervals over rows, for this one trained model."
        ),
        headlines=list(_headlines(report)),
        sections=sections,
        facts=[
            ("report", evaluation.ref),
            ("model", report.model),
            ("data", report.data),
            *((key.replace("_", " "), str(value)) for key, value in report.configuration.items()),
        ],
        notes=report.notes,
        made_by=f"numtok report {evaluation.ref} --html FILE",
    )


def _trained_on(report: Report) -> str:
    """Return a phrase on whether the model was trained on these rows. It is empty if that is
    unknown, because the model, or one whose weights it started with, was trained on other data."""
    if report.training_data != report.data:
        return ""
    if report.split == TRAIN:
        return " of its training data"
    configuration = report.configuration.items()
    before = {value for key, value in configuration if key.endswith("init.data")}
    presets = [str(value) for key, value in configuration if key.endswith("preset")]
    if before - {report.data} or "hf" in map(name_in, presets):
        return ""
    return " that it was not trained on"


def _headlines(report: Report) -> Iterator[Headline]:
    for name, found in report.metrics.items():
        words = _MEANINGS.get(name)  # with settings it means something else
        if words and found.value is not None:
            shown, (cell,), _ = metric_cells(name, [found])
            yield headline(shown, cell, words)
    words = "predictions that are not valid"
    yield Headline("invalid", share(report.invalid), "", words)


def _of_numbers(evaluation: Evaluation, resolve: Resolve) -> Iterator[Section]:
    report = evaluation.report
    predictions = ReportPredictions.read(evaluation)
    answers = predictions.answers
    errors = standard_errors(answers, fields_of(predictions))
    held = page_rows(predictions, errors, report, resolve)
    truth = truth_panel(answers, held.rows)
    label, colours = report.scheme, {report.scheme: 0}
    sizes = size_panel({label: answers}, colours)
    beyond = f" {truth.beyond:,} beyond the axis are drawn at its edge." * bool(truth.beyond)
    band = " The orange band is the median 90% interval predicted." * truth.banded
    text = (
        f"Darker cells hold more of the {len(answers.truth):,} predictions; dots are the "
        f"{len(held.rows):,} rows that this page holds. On the gray line, predictions equal the "
        f"true values.{band}{beyond} A click on a dot or a cell shows its rows below."
    )
    off = [*chart("truth", "Predicted against true", text, truth.panel), *size_chart("size", sizes)]
    yield Section("predictions", "How far off predictions are", "", off)
    each = "One dot per part, with its 95% interval."
    yield from section("fields", "Errors by field and group", each, _fields(report))
    sure = [*_pit_chart(answers), *coverage_chart("coverage", {label: answers}, colours)]
    yield from section("calibration", "Calibration", "", sure)
    losses = learning_charts("learning", {label: [evaluation]}, colours, resolve)
    yield from section("learning", "Learning curves", "", losses)
    groups = [name for name, _ in _groups(report)]
    held_rows = _rows(predictions, held, truth.cells, sizes, groups)
    yield Section("rows-section", "Rows, worst first", "", [held_rows])


def _pit_chart(answers: Predictions) -> Iterator[PageChart]:
    text = (
        "Predicted probability of the true value or less. Calibrated predictions are flat, within "
        "the gray band. A hump means that intervals are too wide, high ends that they are too "
        "narrow."
    )
    return chart("pit", "Are probabilities calibrated?", text, pit_panel(answers), height=360)


def _fields(report: Report) -> Iterator[PageChart]:
    parts: list[tuple[str, dict[str, Figures]]] = []
    if report.fields:
        parts.append(("field", report.fields))
    elif len(report.by_target) > 1:
        parts.append(("target", report.by_target))
    for place, (name, values) in enumerate([*parts, *_groups(report)]):
        there = dict.fromkeys(metric for found in values.values() for metric in found)
        metric = next((one for one in (*_BY_PART, *report.metrics) if one in there), None)
        figures, note = largest_fields(
            {value: found[metric] for value, found in values.items() if metric in found}
        )
        kind = "field" if name in ("field", "target") else f"{GROUP}{name}"
        if metric and (panel := lined_up(figures, metric, kind)):
            better = METRICS.build(metric).better
            text = f"{metric} for each value of {name}; {better} is better.{note}"
            yield PageChart(name=f"part-{place}", heading=f"By {name}", text=text, panel=panel)


def _groups(report: Report) -> list[tuple[str, dict[str, Figures]]]:
    """Return the metrics of groups that have several values."""
    return [(name, values) for name, values in report.groups.items() if len(values) > 1]


def _rows(
    predictions: ReportPredictions,
    held: PageRows,
    cells: Ints,
    sizes: SizePanel | None,
    groups: Sequence[str],
) -> RowList:
    answers = predictions.answers
    parts = parts_of(predictions, groups)
    keys = picks_of(held.rows, parts, sizes)
    rows = []
    assert answers.truth_literal is not None and answers.prediction_literal is not None
    for place, (row, around) in enumerate(zip(held.rows.tolist(), held.excerpts, strict=True)):
        ends = PageCell("", -LAST)
        if answers.quantiles is not None and not np.isnan(answers.quantiles[row]).any():
            low, high = (float(answers.quantiles[row, end]) for end in (0, -1))
            width = high - low if np.isfinite(high - low) else LAST
            ends = PageCell(f"{_end(low)} to {_end(high)}", width)
        valid = bool(answers.valid[row])
        literal = answers.prediction_literal[row] if valid else None
        value = float(answers.prediction[row])
        error = float(held.errors[row])
        truth = answers.truth_literal[row]
        true = PageCell(truth, float(answers.truth[row]))
        predicted = PageCell(_short(literal, value), value if valid else LAST)
        wrong = PageCell(number(error) if valid else "-", error if valid else LAST)
        own = [held.fields[row], true, predicted, ends, wrong]
        picks = [*keys[place], *([f"cell:{cells[place]}"] if cells[place] >= 0 else [])]
        rows.append(HeldRow(own, around.before, truth, around.after, picks))
    every = len(answers.truth)
    text = (
        f"All {every:,} predictions." if every == len(rows) else
        f"{len(rows):,} of {every:,} predictions: the {MOST // 4:,} worst, and others drawn at "
        "random. Charts of bins show all predictions."
    )  # fmt: skip
    lacking = "" if held.has_texts else " Their texts are no longer in the store."
    return RowList(
        caption="Predictions with the text around them",
        text=f"{text} Errors are in standard deviations of the true values of the field. The "
        f"number is marked in its text.{lacking}",
        columns=["field", "true", "predicted", "5% to 95%", "error", "text"],
        rows=rows,
        filters=part_filters(parts) + size_filters(sizes),
    )


def _end(value: float) -> str:
    """Format the end of an interval; an overflow is infinite."""
    return number(value) if np.isfinite(value) else "\u221e" if value > 0 else "-\u221e"


def _short(literal: str | None, value: float) -> str:
    """Return the literal if it is short, else the number; ``none`` for None."""
    if literal is None:
        return "none"
    return literal if len(literal) <= _LONG else number(value)
