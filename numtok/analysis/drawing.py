"""Draws pictures as PNG, SVG or PDF files, with vl-convert.

Vega-Lite draws each panel. This module arranges the panels in a grid, with the legend above and the
notes below. vl-convert has its own fonts and is imported only inside functions.
"""

import math
import re
import struct
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from importlib.util import find_spec

from numtok.analysis.picture import (
    Band,
    CellMarks,
    ColumnMarks,
    Levels,
    LineMark,
    Mark,
    Panel,
    Picture,
    Points,
    Ticks,
)
from numtok.analysis.vega import (
    FONT,
    PALETTE,
    QUIET,
    SHAPES,
    chart,
    color_of,
    dash_of,
    for_xml,
    shape_of,
    still,
)
from numtok.errors import UsageError

_WIDEST = 4  # panels in a row
_LETTER, _WIDE_LETTER = 6.6, 7.6  # pixels of a letter, and of a capital, 12 pixels high
_ENTRY, _NOTE, _TITLE = 22, 16, 17  # pixels: a line of the legend, of notes, of a title
_SMALLEST = 160  # pixels: smaller panels are drawn at this size and scaled down


def check_drawing() -> None:
    """Raise UsageError if the package that draws figures, vl-convert, is not installed."""
    if find_spec("vl_convert") is None:
        raise UsageError(
            "figure needs the package vl-convert-python. Install it: pip install vl-convert-python"
        )


def image(picture: Picture, format: str, size: tuple[int, int] | None, made_by: str) -> bytes:
    """Draw a picture and return the bytes of the ``png``, ``svg`` or ``pdf`` file.

    ``size`` is (width, height) in pixels; None for :func:`default_size`. PNG and SVG files store
    the text ``made_by``.
    """
    import vl_convert

    drawn = _composed(picture, size or default_size(picture), made_by)
    if format == "svg":
        return drawn.encode()
    rendered: bytes
    if format == "pdf":
        rendered = vl_convert.svg_to_pdf(drawn)
        return rendered
    rendered = vl_convert.svg_to_png(drawn)
    text = b"iTXtDescription\0\0\0\0\0" + made_by.encode()
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return rendered[:-12] + chunk + rendered[-12:]  # before the last chunk, which is empty


def columns_of(picture: Picture) -> int:
    """Return the number of panels per row. Up to three panels are in one row; more panels form a
    roughly square grid with at most four per row."""
    count = len(picture.panels)
    return count if count <= 3 else min(_WIDEST, math.ceil(math.sqrt(count)))


def default_size(picture: Picture) -> tuple[int, int]:
    """Return the default (width, height) in pixels: 800 by 600 for one panel, and more for a grid
    or for many names on an axis."""
    columns = columns_of(picture)
    rows = math.ceil(len(picture.panels) / columns)
    longest = max(len(panel.y.names) for panel in picture.panels)
    width, height = (800, 600) if columns == 1 else (420 * columns, 380 * rows + 80)
    return width, max(height, 140 + 26 * longest)


def _composed(picture: Picture, size: tuple[int, int], made_by: str) -> str:
    """Return the whole picture as one SVG."""
    width, height = size
    legend = list(_legend(picture.panels, width))
    notes = [line for note in picture.notes for line in _lines(note, width - 24)]
    top = 12 + _ENTRY * len(legend)
    below = 8 + _NOTE * len(notes)
    columns = columns_of(picture)
    across = width / columns
    down = (height - top - below) / math.ceil(len(picture.panels) / columns)
    parts = [_at(0, 10 + _ENTRY * (index + 0.5), line) for index, line in enumerate(legend)]
    for index, panel in enumerate(_sharing_labels(picture.panels, columns)):
        row, column = divmod(index, columns)
        parts.append(_placed(panel, (column * across, top + row * down, across, down), f"p{index}"))
    for index, note in enumerate(notes):
        parts.append(_text(12, height - 8 - _NOTE * (len(notes) - 1 - index), note, "ink-2"))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="12">'
        f"<desc>{_escaped(made_by)}</desc>"
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>{"".join(parts)}</svg>\n'
    )
    return re.sub(r"var\(--([\w-]+)\)", lambda match: PALETTE[match[1]], svg)


def _placed(panel: Panel, rectangle: tuple[float, float, float, float], name: str) -> str:
    """Draw a panel with its title into a rectangle: left, top, width and height."""
    left, top, width, height = rectangle
    if panel.diagonal is not None:  # about square within its axes
        side = min(width, height - _TITLE)
        left, width, height = left + (width - side) / 2, side, side + _TITLE
    scale = max(1.0, _SMALLEST / max(1.0, min(width, height)))
    across, down = round(width * scale), round(height * scale)
    drawn = chart(name, panel, down) | {"width": across}
    for layer in drawn["layer"]:
        for of, axis, room in (("x", panel.x, across), ("y", panel.y, down)):
            if of in layer["encoding"] and "axis" in layer["encoding"][of]:
                layer["encoding"][of]["title"] = _lines(axis.label, 0.8 * room) or " "
    style = drawn["config"]
    drawn["config"] = style | {"axis": style["axis"] | {"labelLimit": 0.45 * across}}
    if panel.title:
        title = {"text": _lines(panel.title, 0.8 * across), "fontSize": 13, "offset": 8}
        drawn["title"] = title | {"fontWeight": "normal", "color": "var(--ink)"}
    svg = still(name, drawn)
    where = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
    opening = f'<svg {where} viewBox="0 0 {across} {down}">'
    return re.sub(r"<svg [^>]*>", lambda _: opening, svg, count=1).strip()


def _sharing_labels(panels: Sequence[Panel], columns: int) -> Iterator[Panel]:
    """Keep labels that all panels share only on the left and bottom panels."""
    alike = {of: len({getattr(panel, of).label for panel in panels}) == 1 for of in ("x", "y")}
    for index, panel in enumerate(panels):
        x, y = panel.x, panel.y
        if alike["x"] and index + columns < len(panels):
            x = replace(x, label="")
        if alike["y"] and index % columns:
            y = replace(y, label="")
        yield replace(panel, x=x, y=y)


def _legend(panels: Sequence[Panel], width: int) -> Iterator[str]:
    """Yield the lines of the legend, centered, with one entry per label."""
    entries: dict[str, str] = {}
    for panel in panels:
        own: dict[str, str] = {}
        for mark in panel.marks:
            own[mark.label] = own.get(mark.label, "") + _swatch(mark)  # a line upon its band
        if panel.diagonal is not None:
            own[panel.diagonal] = _stroke(QUIET)
        for label, swatch in own.items():
            entries.setdefault(label, swatch)
    lines: list[list[tuple[float, str]]] = [[]]
    for label, swatch in entries.items():
        room = 52 + _WIDE_LETTER * len(label)
        if lines[-1] and sum(taken for taken, _ in lines[-1]) + room > width - 24:
            lines.append([])
        lines[-1].append((room, swatch + _text(32, 4, label, "ink")))
    for line in filter(None, lines):
        left = (width - sum(room for room, _ in line)) / 2
        parts = []
        for room, entry in line:
            parts.append(_at(max(4.0, left), 0, entry))
            left += room
        yield "".join(parts)


def _swatch(mark: Mark) -> str:
    """Draw the legend symbol of a mark: 24 pixels wide, centered at a height of 0."""
    if isinstance(mark, Levels):
        return _stroke(QUIET, [4, 3])
    if isinstance(mark, Ticks):
        return f'<path d="M12-5V5" stroke="{QUIET}"/>'
    color = color_of(mark.colour)
    if isinstance(mark, Band | ColumnMarks | CellMarks):
        opacity = 0.18 if isinstance(mark, Band) else 0.8
        return f'<path d="M0-6H24V6H0Z" fill="{color}" fill-opacity="{opacity}"/>'
    line = _stroke(color, dash_of(mark)) if isinstance(mark, LineMark) else ""
    if isinstance(mark, LineMark) and not mark.dots:
        return line
    shape = list(SHAPES.values())[shape_of(mark.colour or 0)]
    if isinstance(mark, Points):
        shape = SHAPES["diamond" if mark.at_edge else "circle"]
    return line + f'<path transform="translate(12 0)" d="{shape}" fill="{color}"/>'


def _stroke(color: str, dashes: Sequence[int] = (1, 0)) -> str:
    dash = " ".join(map(str, dashes))
    return f'<path d="M0 0H24" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>'


def _at(x: float, y: float, drawn: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{drawn}</g>'


def _text(x: float, y: float, text: str, color: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="var(--{color})">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(for_xml(text), quote=False)


def _lines(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, max(8, int(width / _LETTER)))
