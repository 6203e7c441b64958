"""What ``errors`` prints: wrong parts, frequencies, numbers predicted too often."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from numtok.cli.output.figures import figure, number, print_figures, print_lines, share
from numtok.cli.output.printing import Format, print_data

if TYPE_CHECKING:
    from numtok.stages.errors import ErrorAnalysis, NumberFrequency, ReportErrors


class ErrorRow(NamedTuple):
    """A row of CSV, one figure."""

    kind: str
    label: str
    of: str
    figure: float | None
    low: float | None = None
    high: float | None = None
    true: float | None = None
    by_chance: float | None = None
    independent: float | None = None
    of_squares: float | None = None
    reference: str | None = None


def print_errors(found: "ErrorAnalysis", format: Format) -> None:
    """Print on stdout; CSV has one row a figure, JSON everything."""
    if print_data(format, found, ErrorRow._fields, _flat(found)):
        return
    print_figures(
        "what is wrong: one part alone, several, or it is no number",
        ["report", "wrong", "share of all", "of squares"],
        [
            [one.label, error.kind, figure(error.share), _percent(error.of_squares)]
            for one in found.errors
            for error in one.errors
            if error.share.value
        ],
        format,
    )
    for label, reference in dict.fromkeys((one.label, one.reference) for one in found.differences):
        print_figures(
            f"shares of {label}, less those of {reference}: one model, the same numbers",
            ["wrong", "difference"],
            [
                [one.kind, figure(one.share)]
                for one in found.differences
                if (one.label, one.reference) == (label, reference)
            ],
            format,
        )
    print_figures(
        "how far frequencies are from the true ones: total variation (by chance)",
        ["report", *(distance.part for distance in found.errors[0].distances)],
        [
            [one.label]
            + [f"{number(part.value)} ({number(part.by_chance)})" for part in one.distances]
            for one in found.errors
        ],
        format,
    )
    _print_sizes(
        "the most common mantissa with the most common exponent",
        [(one.label, one.commonest) for one in found.errors if one.commonest],
        format,
    )
    surplus = [(one.label, size) for one in found.errors for size in one.surplus]
    if surplus:
        _print_sizes("predicted beyond their share", surplus, format)
    print_lines(
        [
            "right: to these digits; 999E-3 for 100E-2 and the reverse are right too. of squares: "
            "the share of the sum of squared errors. by chance: what is to be expected between "
            "truths and predictions that are drawn alike. unrelated: of predictions, if their "
            "mantissas told nothing of their exponents. Frequencies leave signs out."
        ]
    )


def _print_sizes(
    title: str, sizes: "Sequence[tuple[str, NumberFrequency]]", format: Format
) -> None:
    head = ["report", "number", "true", "predicted", "unrelated", "of squares"]
    rows = []
    for label, size in sizes:
        shares = map(share, (size.truth, size.predicted, size.independent))
        rows.append([label, size.number, *shares, _percent(size.of_squares)])
    print_figures(title, head, rows, format)


def _percent(value: float | None) -> str:
    """As ``share``, with what is next to nothing as ``0%``."""
    return share(value if value is None or value > 1e-5 else 0.0)


def _flat(found: "ErrorAnalysis") -> Iterator[ErrorRow]:
    for one in found.errors:
        yield from _of_report(one)
    for other in found.differences:
        of = other.share
        yield ErrorRow(
            kind="difference",
            label=other.label,
            of=other.kind,
            figure=of.value,
            low=of.low,
            high=of.high,
            reference=other.reference,
        )


def _of_report(one: "ReportErrors") -> Iterator[ErrorRow]:
    for error in one.errors:
        of = error.share
        yield ErrorRow(
            kind="error",
            label=one.label,
            of=error.kind,
            figure=of.value,
            low=of.low,
            high=of.high,
            of_squares=error.of_squares,
        )
    for part in one.distances:
        yield ErrorRow("distance", one.label, part.part, part.value, by_chance=part.by_chance)
    commonest = [] if one.commonest is None else [one.commonest]
    for kind, sizes in (("commonest", commonest), ("surplus", one.surplus)):
        for size in sizes:
            yield ErrorRow(
                kind,
                one.label,
                size.number,
                size.predicted,
                true=size.truth,
                independent=size.independent,
                of_squares=size.of_squares,
            )
