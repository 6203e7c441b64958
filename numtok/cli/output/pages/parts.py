"""Parts of several pages: cells with intervals, filters of rows, and the fields of a chart."""

from collections.abc import Mapping, Sequence

from numtok.analysis.panels.numbers import SizePanel
from numtok.cli.output.figures import Formatted, number
from numtok.cli.output.pages.page import Headline, PageCell
from numtok.reports import Figure
from numtok.row import GROUP, in_order

LAST = 1e300  # sorts infinite values last
_FIELDS = 40  # or values of a group, that a chart shows


def folded(formatted: Formatted) -> PageCell:
    """Put the interval of a value below it.

    >>> folded(Formatted("0.9", 0.9, ("0.8", "1.0")))
    PageCell(text='0.9', key=0.9, aside='[0.8, 1.0]')
    """
    interval = f"[{', '.join(formatted.ends)}]" if formatted.ends else ""
    return PageCell(formatted.value, formatted.key, aside=interval)


def headline(name: str, formatted: Formatted, meaning: str) -> Headline:
    """Return a value with its interval below it, and its meaning."""
    cell = folded(formatted)
    return Headline(name, cell.text, cell.aside, meaning)


def largest_fields(figures: Mapping[str, Figure]) -> tuple[dict[str, Figure], str]:
    """Return the fields with the most numbers, in their order, as many as a chart shows; and a note
    on the rest."""
    if len(figures) <= _FIELDS:
        return dict(figures), ""
    kept = set(sorted(figures, key=lambda name: -figures[name].n)[:_FIELDS])
    found = {name: one for name, one in figures.items() if name in kept}
    return found, f" Only the {_FIELDS} largest of {len(figures)} are drawn."


def part_filters(parts: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return filters for the parts that rows belong to, if there are several."""
    found = []
    for kind, names in parts.items():
        values = in_order(set(names))
        if len(values) > 1:
            found += [(f"{kind}:{one}", f"{kind.removeprefix(GROUP)} {one}") for one in values]
    return found


def size_filters(sizes: SizePanel | None) -> list[tuple[str, str]]:
    """Return filters for the magnitudes of the true values."""
    ranges = sizes.ranges if sizes is not None else ()
    return [(key, f"|true value| {number(low)} to {number(high)}") for key, low, high in ranges]
