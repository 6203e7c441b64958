"""What ``faults`` prints: wrong parts, frequencies, numbers predicted too often."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from numtok.cli._figures import figure, number, print_figures, print_lines, share
from numtok.cli._shared import Format, print_json, print_table

if TYPE_CHECKING:
    from numtok.stages.faults import Faults, Size


class Row(NamedTuple):
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


def print_faults(found: "Sequence[Faults]", format: Format) -> None:
    """Print on stdout; CSV has one row a figure, JSON everything."""
    if format is Format.JSON:
        import msgspec

        print_json({"faults": msgspec.to_builtins(found)})
        return
    if format is Format.CSV:
        print_table("", Row._fields, [row for one in found for row in _flat(one)], format)
        return
    print_figures(
        "what is wrong: one part alone, several, or it is no number",
        ["report", "wrong", "share of all", "of squares"],
        [
            [one.label, fault.kind, figure(fault.share), _percent(fault.of_squares)]
            for one in found
            for fault in one.faults
            if fault.share.value
        ],
        format,
    )
    print_figures(
        "how far frequencies are from the true ones: total variation (by chance)",
        ["report", *(distance.part for distance in found[0].distances)],
        [
            [one.label]
            + [f"{number(part.value)} ({number(part.by_chance)})" for part in one.distances]
            for one in found
        ],
        format,
    )
    _print_sizes(
        "the most common mantissa with the most common exponent",
        [(one.label, one.commonest) for one in found if one.commonest],
        format,
    )
    surplus = [(one.label, size) for one in found for size in one.surplus]
    if surplus:
        _print_sizes("predicted beyond their share", surplus, format)
    print_lines(
        [
            "of squares: the share of the sum of squared errors. unrelated: of predictions, if "
            "their mantissas told nothing of their exponents. Frequencies leave signs out."
        ]
    )


def _print_sizes(title: str, sizes: "Sequence[tuple[str, Size]]", format: Format) -> None:
    head = ["report", "number", "true", "predicted", "unrelated", "of squares"]
    rows = []
    for label, size in sizes:
        shares = map(share, (size.truth, size.predicted, size.independent))
        rows.append([label, size.number, *shares, _percent(size.of_squares)])
    print_figures(title, head, rows, format)


def _percent(value: float | None) -> str:
    """As ``share``, with what is next to nothing as ``0%``."""
    return share(value if value is None or value > 1e-5 else 0.0)


def _flat(one: "Faults") -> Iterator[Row]:
    for fault in one.faults:
        of = fault.share
        yield Row(
            "fault", one.label, fault.kind, of.value, of.low, of.high, of_squares=fault.of_squares
        )
    for part in one.distances:
        yield Row("distance", one.label, part.part, part.value, by_chance=part.by_chance)
    commonest = [] if one.commonest is None else [one.commonest]
    for kind, sizes in (("commonest", commonest), ("surplus", one.surplus)):
        for size in sizes:
            yield Row(
                kind,
                one.label,
                size.number,
                size.predicted,
                true=size.truth,
                independent=size.independent,
                of_squares=size.of_squares,
            )
