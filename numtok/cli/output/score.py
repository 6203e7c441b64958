"""Prints scores of answers: metrics by rule or by model, and comparisons of models."""

from collections.abc import Iterator, Sequence
from typing import Any

from numtok.cli.output.figures import difference, ends, metric_cells, p_value, unit_of_difference
from numtok.cli.output.printing import (
    Format,
    Part,
    Sheet,
    print_result,
    requirements_sheet,
)
from numtok.evaluation.answer_scores.scores import AnswerScores, RuleScores
from numtok.evaluation.prediction_table import clusters_note
from numtok.names import counted

COLUMNS = ("kind", "model", "rule", "metric", "n", "figure", "low", "high", "reference", "p",
           "p_holm", "detectable")  # fmt: skip
#: Column headings of metrics whose specs are long or less clear than these headings.
_HEADINGS = {"number-generation-ratio": "answered", "lmae,skip=yes": "lmae"}
_EXACT = "exact-match"


def print_scores(scores: AnswerScores, format: Format) -> None:
    """Print scores of answers on stdout. CSV has one row per value; JSON contains everything."""
    print_result(format, scores, COLUMNS, _records(scores), _parts(scores))


def _parts(scores: AnswerScores) -> Iterator[Part]:
    where = counted(scores.rows, "row")
    if scores.clusters is not None:
        where += f" in {counted(scores.clusters, 'cluster')}"
    if len(scores.models) == 1:
        [model] = scores.models
        yield _sheet(scores, f"{model.name}: {where}", "rule", model.rules, _rules(scores))
    else:
        for index, rule in enumerate(_rules(scores)):
            own = [model.rules[index] for model in scores.models]
            names = [model.name for model in scores.models]
            yield _sheet(scores, f"{rule}: {where}", "model", own, names)
    if scores.comparisons:
        yield _comparisons(scores)
    yield from requirements_sheet(scores.requirements, "model")
    yield list(_legend(scores))


def _rules(scores: AnswerScores) -> list[str]:
    return [own.rule for own in scores.models[0].rules]


def _sheet(
    scores: AnswerScores, title: str, what: str, rows: Sequence[RuleScores], names: Sequence[str]
) -> Sheet:
    """Return a table with one row per rule or model, and one column per metric."""
    headings: list[str] = []
    columns: list[Sequence[object]] = []
    better = {}
    if _EXACT in scores.metrics:
        headings.append("right")
        exact = [row.metrics[_EXACT] for row in rows]
        columns.append([None if one.value is None else round(one.value * one.n) for one in exact])
    for metric, direction in scores.metrics.items():
        _, cells, _ = metric_cells(
            metric, [row.metrics[metric] for row in rows], score_is_plain=True
        )
        headings.append(_HEADINGS.get(metric, metric))
        columns.append(cells)
        better[headings[-1]] = direction
    table = [[name, *cells] for name, cells in zip(names, zip(*columns, strict=True), strict=True)]
    if what == "rule":  # no rule is better than another
        return Sheet(title, [what, *headings], table)
    return Sheet(title, [what, *headings], table, picks=names, better=better)


def _comparisons(scores: AnswerScores) -> Sheet:
    metric = scores.compared_by
    scale, unit = unit_of_difference(metric)
    rows = []
    for one in scores.comparisons:
        apart = difference(one.difference, metric, apart=True)
        detectable = "-" if one.detectable is None else f"{scale * one.detectable:.2g}{unit}"
        rows.append([one.model, one.rule, apart, p_value(one.p), p_value(one.p_holm), detectable])
    title = f"difference in {_HEADINGS.get(metric, metric)} from {scores.comparisons[0].reference}"
    return Sheet(title, ("model", "rule", "difference", "p", "p (Holm)", "detectable"), rows)


def _legend(scores: AnswerScores) -> Iterator[str]:
    """Yield sentences that explain the tables."""
    units = "rows" if scores.clusters is None else "clusters"
    yield "A missing answer is wrong."
    if scores.clusters is None:
        yield "Intervals: 95%, bootstrap over rows."
    else:
        yield clusters_note(scores.clusters)
    if "lmae,skip=yes" in scores.metrics:
        yield "lmae: only answers with the sign of the true value."
    if scores.comparisons:
        least = min(one.difference.n for one in scores.comparisons)
        if least < scores.rows:
            metric = _HEADINGS.get(scores.compared_by, scores.compared_by)
            yield (
                f"difference in {metric}: over the rows that count for both models "
                f"({least:,} or more of {scores.rows:,})."
            )
        mcnemar = " (McNemar's exact test, for right and wrong)" if units == "rows" else ""
        yield f"p: paired permutation test over {units}{mcnemar}."
        if len(scores.comparisons) > 1:
            yield f"p (Holm): corrected for all {len(scores.comparisons):,} comparisons."
        yield "detectable: the smallest difference found with a probability of 80% (5% level)."
    if scores.left_out:
        reasons = ", ".join(f"{count:,} ({reason})" for reason, count in scores.left_out.items())
        yield f"Left out: {reasons}."


def _records(scores: AnswerScores) -> Iterator[dict[str, Any]]:
    for model in scores.models:
        for own in model.rules:
            for metric, figure in own.metrics.items():
                row = {"kind": "score", "model": model.name, "rule": own.rule, "metric": metric}
                yield row | {"n": figure.n} | ends(figure)
    for one in scores.comparisons:
        row = {"kind": "difference", "model": one.model, "rule": one.rule}
        row |= {"metric": scores.compared_by, "reference": one.reference}
        tests = {"p": one.p, "p_holm": one.p_holm, "detectable": one.detectable}
        yield row | {"n": one.difference.n} | ends(one.difference) | tests
