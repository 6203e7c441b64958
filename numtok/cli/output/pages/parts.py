"""Helpers for several pages: cells with intervals, row filters, and selection of fields."""

from collections.abc import Mapping, Sequence

from numtok.analysis.panels.numbers import SizePanel
from numtok.cli.output.figures import Formatted, number
from numtok.cli.output.pages.page import Headline, PageCell
from numtok.reports import Figure
from numtok.row import GROUP, in_order

LAST = 1e300  # sorts infinite values last
_FIELDS = 40  # or values of a group, that a chart shows


def folded(formatted: Formatted) -> PageCell:
    """Return a page cell that shows a value, with its interval below it.

    >>> folded(Formatted("0.9", 0.9, ("0.8", "1.0")))
    PageCell(text='0.9', key=0.9, aside='[0.8, 1.0]')
    """
    interval = f"[{', '.join(formatted.ends)}]" if formatted.ends else ""
    return PageCell(formatted.value, formatted.key, aside=interval)


def headline(name: str, formatted: Formatted, meaning: str) -> Headline:
    """Return a headline that shows a value with its interval and its meaning."""
    cell = folded(formatted)
    return Headline(name, cell.text, cell.aside, meaning)


def largest_fields(figures: Mapping[str, Figure]) -> tuple[dict[str, Figure], str]:
    """Return the fields with the most numbers, limited to those that fit in a chart, and a note on
    omitted fields.

    The order of the fields is kept. The note is empty if no field is omitted.
    """
    if len(figures) <= _FIELDS:
        return dict(figures), ""
    kept = set(sorted(figures, key=lambda name: -figures[name].n)[:_FIELDS])
    found = {name: one for name, one in figures.items() if name in kept}
    return found, f" Only the {_FIELDS} largest of {len(figures)} are drawn."


def part_filters(parts: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return a filter (key, name) for each part of the data, such as a field.

    ``parts`` contains the part that each row belongs to, keyed by kind of part, such as ``field``.
    There are no filters for a kind with only one part.
    """
    found = []
    for kind, names in parts.items():
        values = in_order(set(names))
        if len(values) > 1:
            found += [(f"{kind}:{one}", f"{kind.removeprefix(GROUP)} {one}") for one in values]
    return found


def size_filters(sizes: SizePanel | None) -> list[tuple[str, str]]:
    """Return filters (key, name) for ranges of the magnitude of the true value."""
    ranges = sizes.ranges if sizes is not None else ()
    return [(key, f"|true value| {number(low)} to {number(high)}") for key, low, high in ranges]
