"""Writes an HTML page: draws the charts, fills in the template, and embeds the scripts.

Jinja2 and vl-convert come with the extra ``pages``. They are imported inside functions, and
:func:`check_page` reports a missing one before any work is done. The same page always has the same
bytes. Vega-Lite is compiled to Vega here, so that the browser does not have to.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files as resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numtok import files
from numtok.analysis.picture import BarMarks, ColumnMarks, LineMark, Panel
from numtok.analysis.vega import COLOURS, SHAPES, VEGA_LITE, chart, shape_of, still
from numtok.cli.output.figures import Formatted
from numtok.cli.output.pages.page import Page, PageCell, PageChart, RowList
from numtok.cli.output.pages.parts import folded
from numtok.cli.output.printing import Sheet, human
from numtok.errors import UsageError

FIRST_ROWS = 40  # shown without a script, and at the start
_NEEDED = {"jinja2": "Jinja2", "vl_convert": "vl-convert-python"}
_KINDS = {PageChart: "chart", Sheet: "table", RowList: "rows"}  # of parts, for the template
_MOST_NUMBERS = 120  # rows of the table of a chart
_STATIC = {False: 520, True: 1000}  # pixels: the width of a drawing that is not live


class DrawnChart(NamedTuple):
    """A drawn chart: a Vega specification that the browser draws at the width of the page, and an
    SVG for print and for readers without JavaScript."""

    specification: dict[str, Any]
    still: str


class TableRow(NamedTuple):
    """A row of a table on a page: its cells, the key by which charts select it, the columns in
    which it is best, and whether it is a heading."""

    cells: list[PageCell]
    pick: str
    best: set[int]
    heading: bool


def check_page(path: Path | None) -> None:
    """Raise UsageError if no page can be written to ``path``, because a package is missing or the
    path cannot be a file. ``path`` may be None, meaning that no page is written."""
    if path is None:
        return
    missing = [name for module, name in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise UsageError(
            f'--html needs {" and ".join(missing)}; `pip install "numtok[pages]"` brings what '
            "pages are made with"
        )
    files.check_output("--html", path)


def write_page(path: Path, page: Page, note: Callable[[str], None]) -> None:
    """Write a page to a file, replacing an existing one, and report the path with ``note``."""
    files.write_atomic(path, html(page).encode())
    note(f"page in {path}")


def html(page: Page) -> str:
    """Return a page as one self-contained HTML document."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    parts = [part for section in page.sections for part in section.parts]
    charts = [part for part in parts if isinstance(part, PageChart)]
    lists = [part for part in parts if isinstance(part, RowList)]
    drawn = {one.name: draw(one) for one in charts}
    assert len(drawn) == len(charts), "charts with one name"
    data = {
        "charts": {name: one.specification for name, one in drawn.items()},
        "rows": [_row(row) for one in lists[:1] for row in one.rows],
        "columns": list(lists[0].columns[:-1]) if lists else [],
        "first": FIRST_ROWS,
    }
    script, style = _template("page.js"), _template("page.css")
    vega = runtime()
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(_template("page.html")).render(
        page=page,
        kind_of=lambda part: _KINDS[type(part)],
        stills={name: Markup(one.still) for name, one in drawn.items()},  # of our own drawing
        tables={one.name: described(one.panel) for one in charts},
        data=Markup(in_script(data)),
        first_rows=FIRST_ROWS,
        style=Markup(style),
        runtime=Markup(vega),
        script=Markup(script),
        policy=_policy([vega, script]),
        cell_of=_cell,
        rows_of=table_rows,
        colours=COLOURS,
        shapes=list(SHAPES.values()),
        shape_of=shape_of,
    )


@cache
def runtime() -> str:
    """Return the JavaScript library that draws the charts of a page."""
    import vl_convert

    # vega and vegaLite of the bundle are null; vegaEmbed holds both.
    bundle: str = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE
    )
    return bundle


def draw(part: PageChart) -> DrawnChart:
    """Draw a chart of a page, both as a Vega specification and as an SVG."""
    import vl_convert

    specification = chart(part.name, part.panel, part.height)
    live: dict[str, Any] = vl_convert.vegalite_to_vega(
        specification | {"width": "container"}, vl_version=VEGA_LITE
    )
    svg = still(part.name, specification | {"width": _STATIC[part.wide]})
    svg = re.sub(
        r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)" viewBox', r"<svg viewBox", svg, count=1
    )
    return DrawnChart(live, svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1))


def described(panel: Panel) -> tuple[list[str], list[list[str]]] | None:
    """Return the values in a chart as a table (column headings and rows), for readers who cannot
    see the chart.

    Return None if the table would be empty or too long.
    """
    rows = list(_rows_of(panel))
    if not rows or len(rows) > _MOST_NUMBERS:
        return None
    named = bool(panel.y.names)
    columns = ["", "", panel.x.label] if named else ["", panel.x.label, panel.y.label]
    if named and all(row[0] == row[1] for row in rows):
        rows = [row[1:] for row in rows]
        columns = columns[1:]
    columns = [*columns, "from", "to"]
    keep = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    return [columns[k] for k in keep], [[row[k] for k in keep] for row in rows]


def _rows_of(panel: Panel) -> Iterator[list[str]]:
    """Yield a row for each point, bar or column of a chart."""
    for mark in panel.marks:
        if isinstance(mark, LineMark):
            unknown = np.full(len(mark.x), np.nan)
            ends = [unknown if end is None else end for end in (mark.low, mark.high)]
            for point in zip(mark.x, mark.y, *ends, strict=True):
                yield [mark.label, *map(_digits, point)]
        elif isinstance(mark, BarMarks):
            for place, *numbers in zip(mark.places, mark.lengths, mark.low, mark.high, strict=True):
                yield [mark.label, panel.y.names[round(place)], *map(_digits, numbers)]
        elif isinstance(mark, ColumnMarks):
            for low, high, height in zip(mark.low, mark.high, mark.heights, strict=True):
                yield [mark.label, f"{_digits(low)} to {_digits(high)}", _digits(height), "", ""]


def _digits(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else ""


def _row(row: Any) -> dict[str, Any]:
    cells = [_cell(cell) for cell in row.cells]
    return {
        "cells": [cell.text for cell in cells],
        "asides": [cell.aside for cell in cells],
        "values": [cell.key for cell in cells],
        "before": row.before,
        "mark": row.mark,
        "after": row.after,
        "keys": list(row.picks),
    }


def table_rows(sheet: Sheet) -> list[TableRow]:
    """Return the rows of a table on a page. The best cells are marked in columns where higher or
    lower is better.

    >>> [row.heading for row in table_rows(Sheet("", ["a", "b"], [["x:", ""], ["y", 1]]))]
    [True, False]
    """
    rows = [[_cell(cell) for cell in row] for row in sheet.rows]
    best = sheet.best()
    found = []
    for place, row in enumerate(rows):
        pick = sheet.picks[place] if place < len(sheet.picks) else ""
        marked = {column for column in range(len(row)) if (place, column) in best}
        heading = len(row) > 1 and not any(cell.text for cell in row[1:])
        found.append(TableRow(row, pick, marked if pick else set(), heading))
    return found


def _cell(cell: object) -> PageCell:
    """Return a cell of a sheet as a page cell, with the interval of a value below it."""
    if isinstance(cell, PageCell):
        return cell
    text = human(cell)
    if isinstance(text, Formatted):
        return folded(text)
    return PageCell(text, cell if isinstance(cell, int | float) else None)


def in_script(value: Any) -> str:
    r"""Return a value as JSON for a ``<script>`` element, escaped so that no string can end the
    element.

    >>> print(in_script(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: nothing is loaded, and only these scripts run. Vega
    compiles expressions to functions, which needs ``unsafe-eval``."""
    own = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in scripts
    )
    return (
        f"default-src 'none'; script-src {own} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _template(name: str) -> str:
    return resources("numtok.cli.output.pages").joinpath("templates", name).read_text("utf-8")
