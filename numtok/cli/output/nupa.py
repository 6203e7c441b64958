"""Prints tables of NUPA scores: means, and exact match by digits, by group of tasks and by task."""

from collections.abc import Iterator
from typing import Any

from numtok.analysis.nupa_tables import AnswerGroup
from numtok.cli.output.figures import ends
from numtok.cli.output.printing import Format, Part, Sheet, print_result
from numtok.names import counted
from numtok.stages.nupa import NupaScores

_COLUMNS = ("table", "of", "measure", "n", "figure", "low", "high")
_LEGEND = (
    "learned: the largest number of digits with exact match and digit match of at least 90% and a "
    "d-length of at most 0.1; some: at least 10% and 50%, and at most 1. Intervals are over "
    "questions of the same strata."
)


def print_tables(scores: NupaScores, format: Format) -> None:
    """Print NUPA scores on stdout. CSV has one row per value; JSON contains everything."""
    print_result(format, scores, _COLUMNS, _records(scores), _parts(scores))


def _parts(scores: NupaScores) -> Iterator[Part]:
    every = scores.tables
    yield Sheet(
        f"{counted(scores.n, 'answer')} of {scores.ref}, extracted by the rule {scores.rule}",
        ["mean", "of answers", "of tasks", "of strata"],
        [[one.measure, one.micro, one.of_tasks, one.of_strata] for one in every.means],
    )
    yield _groups("by digits", "digits", every.digits)
    yield _groups("by group of tasks", "group", every.operations)
    yield Sheet(
        "exact match by task: S and M: 1 to 8 digits (1 to 20 in tasks up to 100); L and XL: more",
        ["task", "n", "all", "S", "M", "L", "XL", "S, M", "L, XL", "learned", "some"],
        [
            [one.name, one.n, one.exact, *one.ranges.values(), one.inside, one.outside]
            + [digits or None for digits in (one.well_learned, one.has_performance)]
            for one in every.tasks
        ],
    )
    yield [_LEGEND, *scores.notes]


def _groups(title: str, label: str, groups: list[AnswerGroup]) -> Sheet:
    rows = [[group.name, group.n, *group.means.values()] for group in groups]
    return Sheet(title, [label, "n", *groups[0].means], rows)


def _records(scores: NupaScores) -> Iterator[dict[str, Any]]:
    every = scores.tables
    for mean in every.means:
        means = {"answers": mean.micro, "tasks": mean.of_tasks, "strata": mean.of_strata}
        for of, one in means.items():
            yield {"table": "mean", "of": of, "measure": mean.measure, "n": one.n} | ends(one)
    for table in ("digits", "operations", "strata"):
        for part in getattr(every, table):
            row = {"table": table, "of": part.name, "n": part.n}
            for measure, value in part.means.items():
                yield row | {"measure": measure, "figure": value}
    for task in every.tasks:
        values: dict[str, float | None] = {"exact match": task.exact}
        values |= {f"exact match, {name}": value for name, value in task.ranges.items()}
        values |= {"exact match, S and M": task.inside, "exact match, L and XL": task.outside}
        values |= {"well-learned digits": task.well_learned}
        values |= {"has-performance digits": task.has_performance}
        for measure, value in values.items():
            row = {"table": "tasks", "of": task.name, "n": task.n}
            yield row | {"measure": measure, "figure": value}
