"""What a page is made of: a title, a few figures, and sections of charts, tables and rows.

Everything is computed before; here are its places, and the words around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from numtok.analysis.picture import Panel
from numtok.cli.output.printing import Sheet


class PageCell(NamedTuple):
    """A cell with more than a value: its text, a number to sort by (None: sort by the text), and
    small text below it, such as an interval."""

    text: str
    key: float | None = None
    aside: str = ""


@dataclass(frozen=True, kw_only=True)
class PageChart:
    """A chart with its heading and what it says; ``name`` is its own on the page. ``wide`` takes
    the whole width, ``height`` is in pixels; None: as suits what it shows."""

    name: str
    heading: str
    text: str
    panel: Panel
    wide: bool = False
    height: int | None = None


class HeldRow(NamedTuple):
    """One row that a page holds: the cells of its line, the text on both sides of the number, and
    the keys of marks that stand for it."""

    cells: Sequence[object]
    before: str
    mark: str
    after: str
    picks: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RowList:
    """Rows, of which a script shows more than those at the start, and filters them.

    columns
        The headings of the cells; the text comes last.
    filters
        Keys and their names, from which one is chosen by hand, as by a click into a chart.
    """

    caption: str
    text: str
    columns: Sequence[str]
    rows: Sequence[HeldRow]
    filters: Sequence[tuple[str, str]] = ()


Part = PageChart | Sheet | RowList


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading."""

    name: str
    heading: str
    text: str
    parts: Sequence[Part]


class Headline(NamedTuple):
    """One figure at the top: its name, the figure, its interval, and what it means."""

    name: str
    value: str
    interval: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """All of it. ``lead`` says in a sentence or two what was measured; ``facts`` are names and
    values, ``notes`` what a reader must know."""

    kicker: str
    title: str
    lead: str
    headlines: Sequence[Headline]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    made_by: str = ""
    legend: Sequence[tuple[str, int]] = field(default=())  # names of colours, for all charts
