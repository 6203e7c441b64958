"""Content of an HTML page: a title, headline values, and sections of charts, tables and rows.

These classes store results that were computed elsewhere, and the text around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from numtok.analysis.picture import Panel
from numtok.cli.output.printing import Sheet


class PageCell(NamedTuple):
    """A table cell on a page: its text, a number to sort by (None to sort by the text), and small
    text below it, such as an interval."""

    text: str
    key: float | None = None
    aside: str = ""


@dataclass(frozen=True, kw_only=True)
class PageChart:
    """A chart with its heading and text.

    name
        Name that is unique on the page.
    wide
        True if the chart takes the whole width of the page.
    height
        Height in pixels; None for a height that suits the chart.
    """

    name: str
    heading: str
    text: str
    panel: Panel
    wide: bool = False
    height: int | None = None


class HeldRow(NamedTuple):
    """A data row that is shown on a page.

    cells
        Cells of the row, without its text.
    before, mark, after
        Text before the number, the number, and the text after it.
    picks
        Keys of the chart marks that select the row.
    """

    cells: Sequence[object]
    before: str
    mark: str
    after: str
    picks: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RowList:
    """List of data rows. A script on the page filters them and shows a limited number at a
    time.

    columns
        Headings of the cells; the heading of the text comes last.
    filters
        Key and name of each filter. The reader selects a filter by name, or by clicking in a chart.
    """

    caption: str
    text: str
    columns: Sequence[str]
    rows: Sequence[HeldRow]
    filters: Sequence[tuple[str, str]] = ()


Part = PageChart | Sheet | RowList


@dataclass(frozen=True)
class Section:
    """A section of a page: its heading, an introductory text, and its charts, tables or rows."""

    name: str
    heading: str
    text: str
    parts: Sequence[Part]


class Headline(NamedTuple):
    """A value at the top of a page: its name, formatted value, interval and meaning."""

    name: str
    value: str
    interval: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """Content of an HTML page.

    kicker
        Short line above the title, such as the command.
    lead
        Summary of the measurement in a sentence or two.
    following
        Label and text of the command to run next; None if there is none.
    headlines
        Values to show below the summary.
    facts
        Names and values to list at the end.
    made_by
        Command that writes the page.
    legend
        Label and palette index of each color that all charts share.
    """

    kicker: str
    title: str
    lead: str
    following: tuple[str, str] | None = None
    headlines: Sequence[Headline]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    made_by: str = ""
    legend: Sequence[tuple[str, int]] = field(default=())  # names of colours, for all charts
