"""What several pages have: cells with intervals, what rows are chosen by, and the slots that a
chart shows."""

from collections.abc import Mapping, Sequence

from numtok.analysis.panels.numbers import SizePanel
from numtok.cli.output.figures import Formatted, number
from numtok.cli.output.pages.page import Headline, PageCell
from numtok.reports import Figure
from numtok.row import GROUP, in_order

LAST = 1e300  # sorts what is infinite
_SLOTS = 40  # or values of a group, that a chart shows


def folded(formatted: Formatted) -> PageCell:
    """Put the interval of a value below it.

    >>> folded(Formatted("0.9", 0.9, ("0.8", "1.0")))
    PageCell(text='0.9', key=0.9, aside='[0.8, 1.0]')
    """
    interval = f"[{', '.join(formatted.ends)}]" if formatted.ends else ""
    return PageCell(formatted.value, formatted.key, aside=interval)


def headline(name: str, told: Formatted, meaning: str) -> Headline:
    """Return a value with its interval below it, and what it means."""
    cell = folded(told)
    return Headline(name, cell.text, cell.aside, meaning)


def largest_slots(figures: Mapping[str, Figure]) -> tuple[dict[str, Figure], str]:
    """Those of the most numbers, in their order, as many as a chart shows; and what is said of the
    others."""
    if len(figures) <= _SLOTS:
        return dict(figures), ""
    kept = set(sorted(figures, key=lambda name: -figures[name].n)[:_SLOTS])
    found = {name: one for name, one in figures.items() if name in kept}
    return found, f" The {_SLOTS} of {len(figures)} with the most numbers are drawn."


def part_filters(parts: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What rows can be chosen by without a pointer: what they are part of, where there are several
    of it."""
    found = []
    for kind, names in parts.items():
        values = in_order(set(names))
        if len(values) > 1:
            found += [(f"{kind}:{one}", f"{kind.removeprefix(GROUP)} {one}") for one in values]
    return found


def size_filters(sizes: SizePanel | None) -> list[tuple[str, str]]:
    """And the magnitudes of their truths."""
    ranges = sizes.ranges if sizes is not None else ()
    return [(key, f"|truth| {number(low)} to {number(high)}") for key, low, high in ranges]
