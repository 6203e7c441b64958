"""Vega-Lite specifications of panels, for ``numtok figure`` and HTML pages.

Colors are CSS variables (``var(--c0)``), so the same specification works on light and dark pages
and in print. In image files, the colors of :data:`PALETTE` are used instead.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numtok.analysis.picture import (
    Axis,
    Band,
    BarMarks,
    CellMarks,
    ColumnMarks,
    Levels,
    LineMark,
    Mark,
    Panel,
    Points,
    Ticks,
)
from numtok.arrays import Floats

#: A Vega-Lite specification, or a part of one.
Spec = dict[str, Any]
VEGA_LITE = "6.1"  # the newest version that vl-convert has
COLOURS = 7  # of the page's style
#: Colors of the light style, distinguishable with any color vision (Okabe and Ito 2008).
PALETTE = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "ink-2": "#57606a",
    "rule": "#d0d7de",
    "grid": "#e8ecf0",
    "quiet": "#6e7781",
    "c0": "#0072b2",
    "c1": "#d55e00",
    "c2": "#009e73",
    "c3": "#cc79a7",
    "c4": "#b98300",
    "c5": "#3f9fd8",
    "c6": "#3c4148",
}
#: Shapes of marks, each with its path around 0 for a legend.
SHAPES = {
    "circle": "M0-5A5 5 0 1 0 0 5A5 5 0 1 0 0-5Z",
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "triangle-up": "M0-5L5 4.5H-5Z",
    "diamond": "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "triangle-down": "M0 5L5-4.5H-5Z",
    "cross": "M-1.8-5H1.8V-1.8H5V1.8H1.8V5H-1.8V1.8H-5V-1.8H-1.8Z",
    "triangle-right": "M5 0L-4.5 5V-5Z",
}
_DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
_SQUARE, _FLAT, _LINE = 420, 300, 26  # pixels: of a square panel, another, and a line of names
_AXIS = 64  # pixels: height of an axis with its label
_NAMES = 190  # pixels: largest width of names next to an axis
_TICKS = 7
_ROOM = 8  # pixels between the outermost dots and the end of an axis
_ASIDE = 4  # pixels between dots that would hide each other
QUIET = "var(--quiet)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_LABELS = 3  # fewest ticks of a signed-log axis; with fewer, Vega chooses them
#: Label of a tick on a logarithmic axis: 1e6 instead of 1000000. Empty labels stay empty.
_SHORT = (
    "datum.label && (abs(datum.value) >= 1e5"
    " ? replace(format(datum.value, '~e'), '+', '') : format(datum.value, '~g'))"
)
#: True if a datum is chosen, or if nothing is.
_CHOSEN = "!chosen || datum.pick === chosen || (datum.keys && indexof(datum.keys, chosen) >= 0)"
_STYLE: Spec = {
    "background": "transparent",
    "font": FONT,
    "aria": False,
    "autosize": {"type": "fit", "contains": "padding"},
    "padding": {"left": 8, "right": 10, "top": 6, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink-2)",
        "titleColor": "var(--ink-2)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": "var(--grid)",
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "tickSize": 4,
        "labelLimit": _NAMES,
        "labelOverlap": "greedy",
        "labelSeparation": 5,
    },
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
}


def chart(name: str, panel: Panel, height: int | None = None) -> Spec:
    """Return the Vega-Lite specification of a panel, without its title and width.

    Set its ``width`` before drawing it. ``name`` must be unique on a page. ``height`` is in pixels;
    None for a height that suits the panel.
    """
    layers = [layer for mark in panel.marks for layer in _layers(mark, panel)]
    if panel.diagonal is not None and panel.x.low is not None and panel.x.high is not None:
        ends = [{"x": end, "y": end} for end in _plain([panel.x.low, panel.x.high])]
        line = _layer(ends, {"type": "line", "color": QUIET, "strokeWidth": 1}, _axes(panel))
        # Below everything except marks that fill an area.
        layers.insert(sum(isinstance(mark, CellMarks) for mark in panel.marks), line)
    params = [{"name": "chosen", "value": None}]
    if any(isinstance(mark, Points) and mark.rows is not None for mark in panel.marks):
        params.append({"name": "keysOf", "value": None})
    return {
        "name": name,
        "layer": layers,
        "height": height or _height(panel),
        "params": params,
        "config": _STYLE,
    }


def still(name: str, specification: Spec) -> str:
    """Return a specification drawn as SVG, with ids prefixed by ``name`` to make them unique."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(for_xml(specification), vl_version=VEGA_LITE)
    ids: dict[str, int] = {}  # vl-convert numbers them over all that a process draws
    return re.sub(
        r'(id="|url\(#)(clip\d+|gradient_\d+)',
        lambda match: f"{match[1]}{name}-{ids.setdefault(match[2], len(ids))}",
        svg,
    )


def for_xml(value: Any) -> Any:
    """Return a copy of a value in which characters that XML does not allow are escaped in every
    string. vl-convert would abort the process at such a character."""
    if isinstance(value, str):
        return _NO_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {for_xml(key): for_xml(inner) for key, inner in value.items()}
    return [*map(for_xml, value)] if isinstance(value, list) else value


def shape_of(index: int) -> int:
    """Return the index in :data:`SHAPES` for a color index.

    Shapes are shifted by one each time the colors repeat, so that color and shape together
    distinguish 49 marks.
    """
    return (index + index // COLOURS) % len(SHAPES)


def color_of(index: int | None) -> str:
    """Return the CSS color for a palette index, or gray if the index is None. Indices
    beyond the end of the palette wrap around."""
    return QUIET if index is None else f"var(--c{index % COLOURS})"


def dash_of(mark: LineMark) -> list[int]:
    """Return the dash pattern of a line, as lengths in pixels."""
    return [4, 3] if mark.colour is None else _DASHES[mark.colour // COLOURS % len(_DASHES)]


def _height(panel: Panel) -> int:
    if panel.y.names:
        return _AXIS + _LINE * len(panel.y.names)
    return _SQUARE if panel.diagonal is not None else _FLAT


def _layer(rows: list[Spec], mark: Spec, encoding: Spec) -> Spec:
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _axes(panel: Panel) -> Spec:
    return {"x": _scaled(panel, "x"), "y": _scaled(panel, "y")}


def _scaled(panel: Panel, of: str, field: str = "") -> Spec:
    """Return the encoding of a field along the x or the y axis.

    If an axis has names instead of numbers, the first name is at the top.
    """
    axis: Axis = getattr(panel, of)
    encoded: Spec = {"field": field or of, "type": "quantitative"}
    if axis.names:
        count = len(axis.names)
        scale: Spec = {"domain": [count - 0.5, -0.5], "nice": False, "zero": False}
        ticks = {
            "values": list(range(count)),
            "labelExpr": f"{json.dumps(for_xml([*axis.names]))}[datum.value]",
            "grid": False,
            "labelOverlap": False,
        }
        return encoded | {"title": None, "scale": scale, "axis": ticks}
    scale = {"nice": False, "zero": False}
    ticks = {"tickCount": _TICKS, "grid": of == "y"}
    if axis.scale == "linear":
        ticks["labelOverlap"] = "parity"  # keeps the labels evenly spaced
    if axis.low is not None and axis.high is not None:
        scale["domain"] = _plain([axis.low, axis.high])
    elif not any(isinstance(mark, ColumnMarks | Band) for mark in panel.marks):
        scale["padding"] = _ROOM
    if axis.scale == "log":
        scale["type"] = "log"
        ticks |= {"format": "~g", "labelExpr": _SHORT}
    elif axis.scale == "signed-log":
        scale |= {"type": "symlog", "constant": axis.linear_below}
        ticks |= {"format": "~g", "labelExpr": _SHORT}
        if len(powers := signed_ticks(axis)) >= _LABELS:
            ticks["values"] = powers
    if axis.ticks:
        ticks["values"] = list(axis.ticks)
    return encoded | {"title": axis.label or None, "scale": scale, "axis": ticks}


def signed_ticks(axis: Axis) -> list[float]:
    """Return the ticks of a signed-log axis: 0 and powers of ten, few enough to be labeled.

    >>> signed_ticks(Axis(label="y", scale="signed-log", low=-100.0, high=1e4))
    [-100.0, 0.0, 100.0, 10000.0]
    """
    if axis.low is None or axis.high is None:
        return []
    largest = max(abs(axis.low), abs(axis.high), axis.linear_below)
    first = round(math.log10(axis.linear_below))
    last = math.floor(math.log10(largest) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / 3))
    powers = [10.0**power for power in range(last, first, -step)]
    every = sorted([0.0, *powers, *(-power for power in powers)])
    return [tick for tick in every if axis.low <= tick <= axis.high]


def _plain(values: Any) -> list[float | None]:
    """Return numbers for JSON; NaN and infinity become None.

    Twelve digits separate values that are close together and far from 0, such as times in seconds.
    """
    return [
        float(f"{value:.12g}") if np.isfinite(value) else None
        for value in np.asarray(values, np.float64).tolist()
    ]


def _above(values: Floats, axis: Axis) -> Floats:
    """Clip values that a logarithmic axis cannot show to its lower end, or omit them."""
    if axis.scale != "log":
        return values
    return np.where(values > 0, values, math.nan if axis.low is None else axis.low)


def _rows(**columns: Any) -> list[Spec]:
    """Turn columns into rows. Columns that are None, and cells that are None, are omitted."""
    present = {name: values for name, values in columns.items() if values is not None}
    return [
        {name: cell for name, cell in zip(present, cells, strict=True) if cell is not None}
        for cells in zip(*present.values(), strict=True)
    ]


def _layers(mark: Mark, panel: Panel) -> Iterator[Spec]:
    match mark:
        case CellMarks():
            yield _cells(mark, panel)
        case Points():
            yield _points(mark, panel)
        case LineMark():
            yield from _line(mark, panel)
        case Band():
            yield _band(mark, panel)
        case BarMarks():
            yield from _bars(mark, panel)
        case ColumnMarks():
            yield _columns(mark, panel)
        case Levels():
            rule = {"type": "rule", "color": QUIET, "strokeDash": [4, 3], "strokeWidth": 1}
            along: Spec = {mark.of: _scaled(panel, mark.of, "v")}
            yield _layer(_rows(v=_plain(mark.values)), rule, along)
        case Ticks():
            tick = {"type": "tick", "color": QUIET, "thickness": 1, "size": 8, "yOffset": -4}
            along = {"x": _scaled(panel, "x", "v"), "y": {"value": "height"}}
            yield _layer(_rows(v=_plain(mark.x)), tick, along)


def _either(test: str, then: float, otherwise: float) -> Spec:
    return {"condition": {"test": test, "value": then}, "value": otherwise}


def _tooltip(field: str, title: str, format: str = ".4~g") -> Spec:
    """Return one line of a tooltip."""
    return {"field": field, "type": "quantitative", "title": title, "format": format}


def _cells(mark: CellMarks, panel: Panel) -> Spec:
    strength = 0.12 + 0.68 * np.log1p(mark.counts) / np.log1p(mark.counts.max(initial=1))
    rows = _rows(
        x=_plain(mark.left),
        x2=_plain(mark.right),
        y=_plain(mark.bottom),
        y2=_plain(mark.top),
        n=mark.counts.tolist(),
        s=_plain(strength),
        pick=mark.picks or None,
    )
    drawn = {"type": "rect", "color": color_of(mark.colour), "cursor": "pointer"}
    shade = {"field": "s", "type": "quantitative", "legend": None}
    encoding = _axes(panel) | {
        "x2": {"field": "x2"},
        "y2": {"field": "y2"},
        "opacity": shade | {"scale": {"domain": [0, 1], "range": [0, 1]}},
        "tooltip": [_tooltip("n", "numbers here", ",")],
    }
    return _layer(rows, drawn | {"tooltip": {"content": "data"}}, encoding)


def _points(mark: Points, panel: Panel) -> Spec:
    rows = _rows(
        x=_plain(mark.x), y=_plain(mark.y), row=None if mark.rows is None else mark.rows.tolist()
    )
    drawn = {
        "type": "point",
        "filled": True,
        "shape": "diamond" if mark.at_edge else "circle",
        "size": 22,
        "color": color_of(mark.colour),
        "stroke": "var(--paper)",
        "strokeWidth": 0.4,
        "cursor": "pointer" if mark.rows is not None else "default",
    }
    encoding = _axes(panel)
    if mark.pick is not None:  # all share one key, so rows need not hold it
        own = f"!chosen || chosen === {json.dumps(mark.pick)}"
        encoding["opacity"] = _either(own, 1, 0.1)
    elif mark.rows is not None:  # only the page knows the keys of rows
        own = "!chosen || (keysOf && indexof(keysOf[datum.row], chosen) >= 0)"
        encoding["opacity"] = _either(own, 0.75, 0.06)
        encoding["size"] = _either(f"chosen && ({own})", 60, 22)
    return _layer(rows, drawn, encoding)


def _line(mark: LineMark, panel: Panel) -> Iterator[Spec]:
    rows = _rows(
        x=_plain(mark.x),
        y=_plain(_above(mark.y, panel.y)),
        low=None if mark.low is None else _plain(_above(mark.low, panel.y)),
        high=None if mark.high is None else _plain(mark.high),
        pick=mark.picks or None,
        what=[mark.label] * len(mark.x),
    )
    style: Spec = {"color": color_of(mark.colour)}
    if aside := _aside(mark, panel.marks):
        style |= {"xOffset": aside}
    if len(mark.x) > 1:
        drawn = {"type": "line", "clip": True, "strokeWidth": 2, "strokeDash": dash_of(mark)}
        fade = {"value": 0.75} if mark.dots else _either(_CHOSEN, 1, 0.15)
        encoding = _axes(panel) | {"opacity": fade}
        yield _layer(rows, drawn | {"strokeJoin": "round"} | style, encoding)
    tooltip = [{"field": "what", "type": "nominal", "title": "of"}]
    tooltip += [_tooltip("x", panel.x.label), _tooltip("y", panel.y.label)]
    if mark.low is not None:
        bounded = [row for row in rows if "low" in row and "high" in row]
        ends = {"y": _scaled(panel, "y", "low"), "y2": {"field": "high"}}
        encoding = {"x": _scaled(panel, "x")} | ends | {"opacity": _either(_CHOSEN, 0.65, 0.12)}
        yield _layer(bounded, {"type": "rule", "clip": True, "strokeWidth": 1.5} | style, encoding)
        tooltip += [_tooltip("low", "from"), _tooltip("high", "to")] if bounded else []
    if mark.dots:
        encoding = _axes(panel) | {"opacity": _either(_CHOSEN, 1, 0.2), "tooltip": tooltip}
        yield _layer(rows, _dots(mark.colour, 64, bool(mark.picks)) | style, encoding)


def _aside(mark: LineMark, marks: Sequence[Mark]) -> int:
    """Return the pixels by which to shift dots, so that dots with the same x do not hide each
    other."""
    lines = [line for line in marks if isinstance(line, LineMark) and line.dots]
    if mark not in lines or not any(
        np.isin(mark.x, other.x).any() for other in lines if other is not mark
    ):
        return 0
    index = lines.index(mark)  # 0, 1, -1, 2, -2, ...
    return _ASIDE * ((index + 1) // 2) * (1 if index % 2 else -1)


def _dots(colour: int | None, size: int, pickable: bool) -> Spec:
    return {
        "type": "point",
        "filled": True,
        "color": color_of(colour),
        "size": size,
        "shape": list(SHAPES)[shape_of(colour or 0)],
        "cursor": "pointer" if pickable else "default",
        "stroke": "var(--paper)",
        "strokeWidth": 1,
    }


def _band(mark: Band, panel: Panel) -> Spec:
    """Draw an area; an infinite end is drawn at the end of the axis, or at the outermost finite
    end."""
    ends = np.stack([_above(mark.low, panel.y), _above(mark.high, panel.y)])
    finite = ends[np.isfinite(ends)]
    below = finite.min(initial=np.inf) if panel.y.low is None else panel.y.low
    above = finite.max(initial=-np.inf) if panel.y.high is None else panel.y.high
    low, high = np.nan_to_num(ends, nan=np.nan, posinf=above, neginf=below)
    rows = _rows(x=_plain(mark.x), y=_plain(low), y2=_plain(high))
    area = {"type": "area", "clip": True, "color": color_of(mark.colour), "opacity": 0.18}
    return _layer(rows, area, _axes(panel) | {"y2": {"field": "y2"}})


def _bars(mark: BarMarks, panel: Panel) -> Iterator[Spec]:
    """Draw a dot with its interval: on a logarithmic axis a length from 0 has no meaning."""
    rows = _rows(
        x=_plain(mark.lengths),
        y=_plain(mark.places),
        low=_plain(mark.low),
        high=_plain(mark.high),
        pick=mark.picks or None,
        what=[panel.y.names[round(row)] for row in mark.places.tolist()],
    )
    rule = {"type": "rule", "color": color_of(mark.colour), "strokeWidth": 2}
    y = {"y": _scaled(panel, "y")}
    ends = {"x": _scaled(panel, "x", "low"), "x2": {"field": "high"}}
    yield _layer(rows, rule, y | ends | {"opacity": _either(_CHOSEN, 0.7, 0.15)})
    tooltip = [{"field": "what", "type": "nominal", "title": "of"}, _tooltip("x", panel.x.label)]
    tooltip += [_tooltip("low", "from"), _tooltip("high", "to")]
    dots = _dots(mark.colour, 80, bool(mark.picks)) | {"opacity": 1}
    yield _layer(
        rows, dots, _axes(panel) | {"opacity": _either(_CHOSEN, 1, 0.25), "tooltip": tooltip}
    )


def _columns(mark: ColumnMarks, panel: Panel) -> Spec:
    rows = _rows(x=_plain(mark.low), x2=_plain(mark.high), y=_plain(mark.heights))
    drawn = {"type": "rect", "color": color_of(mark.colour), "stroke": "var(--paper)"}
    tooltip = [_tooltip("x", "from"), _tooltip("x2", "to"), _tooltip("y", panel.y.label, ".3~g")]
    encoding = _axes(panel) | {
        "x2": {"field": "x2"},
        "y2": {"datum": 0},
        "opacity": _either(_CHOSEN, 0.8, 0.2),
        "tooltip": tooltip,
    }
    return _layer(rows, drawn | {"strokeWidth": 1}, encoding)
