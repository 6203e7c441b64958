"""Prints error analyses: the wrong parts of numbers, and numbers that are predicted too often."""

from collections.abc import Iterator
from typing import Any

from numtok.cli.output.figures import Formatted, ends, number, percentage, share
from numtok.cli.output.printing import Format, Part, Sheet, print_result
from numtok.stages.errors import ErrorAnalysis, NumberFrequency

_COLUMNS = ("kind", "label", "of", "figure", "low", "high", "true", "by_chance", "independent",
            "of_squares", "reference")  # fmt: skip
_LEGEND = (
    "A part is right to these digits; 999E-3 and 100E-2 count as equal. of squares: percentage of "
    "the sum of squared errors. by chance: expected distance between true values and predictions "
    "from one distribution. unrelated: frequency if mantissas and exponents were independent. "
    "Frequencies ignore signs."
)


def print_errors(analysis: ErrorAnalysis, format: Format) -> None:
    """Print an error analysis on stdout. CSV has one row per value; JSON contains everything."""
    print_result(format, analysis, _COLUMNS, _records(analysis), _parts(analysis))


def _parts(found: ErrorAnalysis) -> Iterator[Part]:
    rows: list[list[object]] = [
        [one.label, error.kind, percentage(error.share), _percent(error.of_squares)]
        for one in found.errors
        for error in one.errors
        if error.share.value
    ]
    title = "what is wrong: one part only, several, or not a number"
    yield Sheet(title, ["report", "wrong", "of all", "of squares"], rows)
    for pair in dict.fromkeys((one.label, one.reference) for one in found.differences):
        own = [one for one in found.differences if (one.label, one.reference) == pair]
        rows = [[one.kind, percentage(one.share)] for one in own]
        title = f"percentages of {pair[0]} minus those of {pair[1]} (same model and numbers)"
        yield Sheet(title, ["wrong", "difference"], rows)
    rows = [
        [one.label, *(f"{number(part.value)} ({number(part.by_chance)})" for part in one.distances)]
        for one in found.errors
    ]
    title = "total variation distance from the true frequencies (expected by chance)"
    yield Sheet(title, ["report", *(part.part for part in found.errors[0].distances)], rows)
    commonest = [
        (analysis.label, analysis.commonest) for analysis in found.errors if analysis.commonest
    ]
    yield _frequencies("the most common mantissa with the most common exponent", commonest)
    if surplus := [(one.label, size) for one in found.errors for size in one.surplus]:
        yield _frequencies("predicted too often", surplus)
    yield [_LEGEND]


def _frequencies(title: str, sizes: list[tuple[str, NumberFrequency]]) -> Sheet:
    columns = ["report", "number", "true", "predicted", "unrelated", "of squares"]
    rows = []
    for label, size in sizes:
        shares = map(share, (size.truth, size.predicted, size.independent))
        rows.append([label, size.number, *shares, _percent(size.of_squares)])
    return Sheet(title, columns, rows)


def _percent(value: float | None) -> Formatted:
    """Format as ``share``, with 0% below 0.001%."""
    return share(value if value is None or value > 1e-5 else 0.0)


def _records(analysis: ErrorAnalysis) -> Iterator[dict[str, Any]]:
    for one in analysis.errors:
        label = {"label": one.label}
        for error in one.errors:
            of = {"of": error.kind, "of_squares": error.of_squares}
            yield {"kind": "error"} | label | of | ends(error.share)
        for part in one.distances:
            of = {"of": part.part, "by_chance": part.by_chance}
            yield {"kind": "distance", "figure": part.value} | label | of
        commonest = [] if one.commonest is None else [one.commonest]
        for kind, sizes in (("commonest", commonest), ("surplus", one.surplus)):
            for size in sizes:
                own = {"of": size.number, "figure": size.predicted, "true": size.truth}
                own |= {"independent": size.independent, "of_squares": size.of_squares}
                yield {"kind": kind} | label | own
    for other in analysis.differences:
        of = {"of": other.kind, "reference": other.reference}
        yield {"kind": "difference", "label": other.label} | of | ends(other.share)
