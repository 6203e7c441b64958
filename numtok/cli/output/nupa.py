"""What ``nupa`` prints: means, and exact match by digits, by group of tasks and by task."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from numtok.cli.output.figures import figure, number, print_figures, print_lines
from numtok.cli.output.printing import SCHEMA, Format, print_data

if TYPE_CHECKING:
    from numtok.analysis.nupa_tables import AnswerGroup
    from numtok.stages.nupa import NupaScores

_COLUMNS = ("table", "of", "measure", "n", "figure", "low", "high")
_Row = tuple[str, str, str, int, float | int | None, float | None, float | None]


def print_tables(found: "NupaScores", format: Format) -> None:
    """Print on stdout; CSV has one row a figure, JSON everything."""
    if print_data(format, found, _COLUMNS, _flat(found), schema=SCHEMA):
        return
    every = found.tables
    print_figures(
        f"{found.n:,} answers of {found.ref}, found by the rule {found.rule}",
        ["mean", "of answers", "of tasks", "of strata"],
        [
            [one.measure, figure(one.micro), figure(one.of_tasks), figure(one.of_strata)]
            for one in every.means
        ],
        format,
    )
    _print_parts("by digits", "digits", every.digits, format)
    _print_parts("by group of tasks", "group", every.operations, format)
    print_figures(
        "exact match by task: S, M are digits 1 to 8 (of tasks up to 100: 1 to 20), L, XL more",
        ["task", "n", "all", "S", "M", "L", "XL", "S, M", "L, XL", "learned", "some"],
        [
            [
                one.name,
                f"{one.n:,}",
                number(one.exact),
                *map(number, one.ranges.values()),
                number(one.inside),
                number(one.outside),
                *(str(digits or "-") for digits in (one.well_learned, one.has_performance)),
            ]
            for one in every.tasks
        ],
        format,
    )
    told = (
        "learned: the largest digit key with exact match and digit match of at least 0.9 and a "
        "d-length of at most 0.1; some: of at least 0.1 and 0.5, and at most 1. Intervals are for "
        "other questions of the same strata."
    )
    print_lines([told, *found.notes])


def _print_parts(title: str, label: str, parts: "Sequence[AnswerGroup]", format: Format) -> None:
    measures = list(parts[0].means)
    print_figures(
        title,
        [label, "n", *measures],
        [[one.name, f"{one.n:,}", *map(number, one.means.values())] for one in parts],
        format,
    )


def _flat(found: "NupaScores") -> Iterator[_Row]:
    """Every figure as a row of :data:`_COLUMNS`."""
    every = found.tables
    for mean in every.means:
        for of, one in (
            ("answers", mean.micro),
            ("tasks", mean.of_tasks),
            ("strata", mean.of_strata),
        ):
            yield "mean", of, mean.measure, one.n, one.value, one.low, one.high
    for name in ("digits", "operations", "strata"):
        parts: list[AnswerGroup] = getattr(every, name)
        for part in parts:
            for measure, value in part.means.items():
                yield name, part.name, measure, part.n, value, None, None
    for task in every.tasks:
        figures: dict[str, float | int | None] = {"exact match": task.exact}
        figures |= {f"exact match, {name}": value for name, value in task.ranges.items()}
        figures |= {"exact match, S and M": task.inside, "exact match, L and XL": task.outside}
        figures |= {
            "well-learned digits": task.well_learned,
            "has-performance digits": task.has_performance,
        }
        for measure, figure_ in figures.items():
            yield "tasks", task.name, measure, task.n, figure_, None, None
