"""The parts of a page: a title, headline values, and sections of charts, tables and rows.

Everything is computed before; these classes hold it and the words around it.
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
    """A chart with its heading and text; ``name`` is unique on the page.

    ``wide`` takes the whole width. ``height`` is in pixels; None stands for a suitable height.
    """

    name: str
    heading: str
    text: str
    panel: Panel
    wide: bool = False
    height: int | None = None


class HeldRow(NamedTuple):
    """One row on a page: the cells of its line, the text on both sides of the number, and the keys
    of its marks in charts."""

    cells: Sequence[object]
    before: str
    mark: str
    after: str
    picks: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RowList:
    """Rows that a script filters and shows in steps.

    columns
        The headings of the cells; the text comes last.
    filters
        Keys and their names, to choose from by hand as by a click into a chart.
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
    """One value at the top: its name, value, interval and meaning."""

    name: str
    value: str
    interval: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page. ``lead`` summarizes the measurement in a sentence or two; ``facts`` are names
    and values, ``notes`` remarks."""

    kicker: str
    title: str
    lead: str
    headlines: Sequence[Headline]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    made_by: str = ""
    legend: Sequence[tuple[str, int]] = field(default=())  # names of colours, for all charts
