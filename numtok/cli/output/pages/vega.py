"""Charts: a panel as a specification of Vega-Lite, and drawn without JavaScript.

Altair and vl-convert are loaded here only, inside functions. What is drawn has the colours of the
page's style (``var(--c0)``), so the same drawing is right in the light, in the dark and in print.
Vega-Lite is translated to Vega here, so that a page need not.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from numtok.analysis.figures.base import (
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

#: A layer of a chart, of Altair, whose types name each property of each kind of mark.
Layer = Any
COLOURS = 7  # of the page's style
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
_DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
_VERSION = "6.1"  # of Vega-Lite, whatever is newest
_SQUARE, _FLAT, _LINE = 420, 300, 26  # pixels: of a square panel, another, and a line of names
_AXIS = 64  # pixels: what an axis and its label take below it
_STATIC = {False: 520, True: 1000}  # pixels: the width where nothing measures it
_NAMES = 190  # pixels: the most that names beside an axis take
_TICKS = 7
_QUIET = "var(--quiet)"
_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
#: The label of a tick of a logarithm, 1e6 in place of 1000000; of those that have none still none.
_SHORT = (
    "datum.label && abs(datum.value) >= 1e5"
    " ? replace(format(datum.value, '~e'), '+', '') : datum.label"
)
#: Whether what a datum stands for is chosen, or nothing is.
_CHOSEN = "!chosen || datum.pick === chosen || (datum.keys && indexof(datum.keys, chosen) >= 0)"


class DrawnChart(NamedTuple):
    """A chart for a page that measures its own width, in Vega, and drawn once as SVG, for those
    without JavaScript and for print."""

    specification: dict[str, Any]
    still: str


@cache
def runtime() -> str:
    """The script that draws."""
    import vl_convert

    # What the bundle calls vega and vegaLite is null; vegaEmbed has both within.
    own = "window.vegaEmbed = vegaEmbed;"
    bundle: str = vl_convert.javascript_bundle(own, vl_version=_VERSION)
    return bundle


def draw(name: str, panel: Panel, wide: bool, height: int | None) -> DrawnChart:
    """Draw a chart; ``name`` is its own on the page."""
    import vl_convert

    # Each part of it was checked as it was made.
    chart = _chart(name, panel, height).to_dict(validate=False)
    found: dict[str, Any] = vl_convert.vegalite_to_vega(
        chart | {"width": "container"}, vl_version=_VERSION
    )
    still = _for_xml(chart | {"width": _STATIC[wide]})
    svg: str = vl_convert.vegalite_to_svg(still, vl_version=_VERSION)
    svg = re.sub(
        r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)" viewBox', r"<svg viewBox", svg, count=1
    )
    svg = re.sub(r'(id="|url\(#)(clip|gradient)', rf"\1{name}-\2", svg)
    svg = svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
    return DrawnChart(found, svg)


def _for_xml(value: Any) -> Any:
    """A chart whose texts have escapes for characters that XML cannot hold: vl-convert aborts the
    process at one."""
    if isinstance(value, str):
        return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {_for_xml(key): _for_xml(inner) for key, inner in value.items()}
    return [*map(_for_xml, value)] if isinstance(value, list) else value


def height_of(panel: Panel) -> int:
    """Pixels that suit what a panel shows."""
    if panel.y.names:
        return _AXIS + _LINE * len(panel.y.names)
    return _SQUARE if panel.diagonal is not None else _FLAT


def _chart(name: str, panel: Panel, height: int | None) -> Layer:
    import altair as alt

    layers = [layer for mark in panel.marks for layer in _layers(mark, panel)]
    if panel.diagonal is not None and panel.x.low is not None and panel.x.high is not None:
        ends = [{"x": end, "y": end} for end in _plain([panel.x.low, panel.x.high])]
        line = _base(ends).mark_line(color=_QUIET, strokeWidth=1)
        layers.insert(_below(panel.marks), line.encode(*_places(panel)))
    chart = alt.layer(*layers).properties(name=name, height=height or height_of(panel))
    chart = chart.add_params(alt.param(name="chosen", value=None))
    if any(isinstance(mark, Points) and mark.rows is not None for mark in panel.marks):
        chart = chart.add_params(alt.param(name="keysOf", value=None))
    return chart.configure(**_STYLE)


def _below(marks: Sequence[Mark]) -> int:
    """Behind which marks the diagonal stands: those that fill an area."""
    return sum(isinstance(mark, CellMarks) for mark in marks)


_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_STYLE: dict[str, Any] = {
    "background": "transparent",
    "font": _FONT,
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


def _base(rows: list[dict[str, Any]]) -> Layer:
    import altair as alt

    return alt.Chart(alt.InlineData(values=rows))


def _places(panel: Panel) -> list[Any]:
    """Both axes; where names stand in place of numbers, the first is on top."""
    import altair as alt

    return [alt.X("x:Q", **_scaled(panel.x, "x")), alt.Y("y:Q", **_scaled(panel.y, "y"))]


def _scaled(axis: Axis, of: str) -> dict[str, Any]:
    import altair as alt

    if axis.names:
        count = len(axis.names)
        words = json.dumps(_for_xml([*axis.names]))
        told: dict[str, Any] = {
            "values": list(range(count)),
            "labelExpr": f"{words}[datum.value]",
            "grid": False,
            "labelOverlap": False,
        }
        scale = alt.Scale(domain=[count - 0.5, -0.5], nice=False, zero=False)
        return {"title": None, "scale": scale, "axis": alt.Axis(**told)}
    facts: dict[str, Any] = {"nice": False, "zero": False}
    told = {"tickCount": _TICKS, "grid": of == "y"}
    if axis.scale == "linear":
        told["labelOverlap"] = "parity"  # those that are left out are as far from each other
    if axis.low is not None and axis.high is not None:
        facts["domain"] = _plain([axis.low, axis.high])
    if axis.scale == "log":
        facts["type"] = "log"
        told |= {"format": "~g", "labelExpr": _SHORT}
    elif axis.scale == "signed-log":
        facts |= {"type": "symlog", "constant": axis.linear_below}
        told |= {"values": signed_ticks(axis), "labelExpr": _SHORT}
    if axis.ticks:
        told["values"] = list(axis.ticks)
    return {"title": axis.label or None, "scale": alt.Scale(**facts), "axis": alt.Axis(**told)}


def signed_ticks(axis: Axis) -> list[float]:
    """Powers of ten on both sides of 0 that are far enough apart to be told, within the axis.

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
    every = sorted([0.0, *powers, *(-one for one in powers)])
    return [one for one in every if axis.low <= one <= axis.high]


def _plain(values: Any) -> list[float | None]:
    """Numbers as JSON has them, of six digits; None for what is none."""
    return [
        float(f"{value:.6g}") if np.isfinite(value) else None
        for value in np.asarray(values, np.float64).tolist()
    ]


def _rows(**columns: Any) -> list[dict[str, Any]]:
    """Columns as rows, without what a row has not."""
    names = list(columns)
    return [
        {name: one for name, one in zip(names, values, strict=True) if one is not None}
        for values in zip(*columns.values(), strict=True)
    ]


def shape_of(place: int) -> int:
    """The index of a shape: another one where colours begin again, so that the two together tell 49
    apart."""
    return (place + place // COLOURS) % len(SHAPES)


def _colour(place: int | None) -> str:
    return _QUIET if place is None else f"var(--c{place % COLOURS})"


def _layers(mark: Mark, panel: Panel) -> Iterator[Layer]:
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
            yield _levels(mark, panel)
        case Ticks():
            yield _ticks(mark, panel)


def _opacity(chosen: float, other: float) -> Any:
    """An encoding by whether something else is chosen."""
    import altair as alt

    return alt.condition(_CHOSEN, alt.value(chosen), alt.value(other))


def _cells(mark: CellMarks, panel: Panel) -> Layer:
    import altair as alt

    strength = 0.12 + 0.68 * np.log1p(mark.counts) / np.log1p(mark.counts.max(initial=1))
    rows = _rows(
        x=_plain(mark.left),
        x2=_plain(mark.right),
        y=_plain(mark.bottom),
        y2=_plain(mark.top),
        n=mark.counts.tolist(),
        s=_plain(strength),
        pick=mark.picks or [None] * len(mark.counts),
    )
    scale = alt.Scale(domain=[0, 1], range=[0, 1])
    return (
        _base(rows)
        .mark_rect(color=_colour(mark.colour), cursor="pointer", tooltip={"content": "data"})
        .encode(
            *_places(panel),
            alt.X2("x2"),
            alt.Y2("y2"),
            alt.Opacity("s:Q", scale=scale, legend=None),
            tooltip=[alt.Tooltip("n:Q", title="numbers here", format=",")],
        )
    )


def _points(mark: Points, panel: Panel) -> Layer:
    import altair as alt

    rows = _rows(
        x=_plain(mark.x),
        y=_plain(mark.y),
        row=mark.rows.tolist() if mark.rows is not None else [None] * len(mark.x),
    )
    circle = "diamond" if mark.at_edge else "circle"
    made = _base(rows).mark_point(
        filled=True, shape=circle, size=22, color=_colour(mark.colour), stroke="var(--paper)",
        strokeWidth=0.4, cursor="pointer" if mark.rows is not None else "default",
    )  # fmt: skip
    if mark.pick is not None:  # all are one, so that none needs to say it
        own = f"!chosen || chosen === {json.dumps(mark.pick)}"
        return made.encode(
            *_places(panel), opacity=alt.condition(own, alt.value(1), alt.value(0.1))
        )
    if mark.rows is None:
        return made.encode(*_places(panel))
    # What rows stand for is known to the page alone, which says it once.
    test = "!chosen || (keysOf && indexof(keysOf[datum.row], chosen) >= 0)"
    return made.encode(
        *_places(panel),
        opacity=alt.condition(test, alt.value(0.75), alt.value(0.06)),
        size=alt.condition(f"chosen && ({test})", alt.value(60), alt.value(22)),
    )


def _line(mark: LineMark, panel: Panel) -> Iterator[Layer]:
    import altair as alt

    place = mark.colour or 0
    nothing = [None] * len(mark.x)
    rows = _rows(
        x=_plain(mark.x),
        y=_plain(mark.y),
        low=nothing if mark.low is None else _plain(mark.low),
        high=nothing if mark.high is None else _plain(mark.high),
        pick=mark.picks or nothing,
        what=[mark.label] * len(mark.x),
    )
    colour = _colour(mark.colour)
    dash = _DASHES[place // COLOURS % len(_DASHES)] if mark.colour is not None else [4, 3]
    told = [
        alt.Tooltip("what:N", title="of"),
        alt.Tooltip("x:Q", title=panel.x.label, format=".4~g"),
    ]
    told += [alt.Tooltip("y:Q", title=panel.y.label, format=".4~g")]
    if len(mark.x) > 1:
        line = _base(rows).mark_line(
            color=colour, strokeWidth=2, strokeDash=dash, strokeJoin="round"
        )
        fade = _opacity(1, 0.15) if not mark.dots else alt.value(0.75)
        yield line.encode(*_places(panel), opacity=fade)
    if mark.low is not None:
        known = [row for row in rows if "low" in row and "high" in row]
        rule = _base(known).mark_rule(color=colour, strokeWidth=1.5)
        x, _ = _places(panel)
        yield rule.encode(
            x, alt.Y("low:Q", **_scaled(panel.y, "y")), alt.Y2("high"), opacity=_opacity(0.65, 0.12)
        )
        told += [alt.Tooltip("low:Q", title="from", format=".4~g")] * bool(known)
        told += [alt.Tooltip("high:Q", title="to", format=".4~g")] * bool(known)
    if mark.dots:
        dots = _base(rows).mark_point(
            filled=True, color=colour, size=64, shape=SHAPES[shape_of(place)],
            cursor="pointer" if mark.picks else "default", stroke="var(--paper)", strokeWidth=1,
        )  # fmt: skip
        yield dots.encode(*_places(panel), opacity=_opacity(1, 0.2), tooltip=told)


def _band(mark: Band, panel: Panel) -> Layer:
    import altair as alt

    rows = _rows(x=_plain(mark.x), y=_plain(mark.low), y2=_plain(mark.high))
    area = _base(rows).mark_area(color=_colour(mark.colour), opacity=0.18)
    return area.encode(*_places(panel), alt.Y2("y2"))


def _bars(mark: BarMarks, panel: Panel) -> Iterator[Layer]:
    """A dot with its interval: what a length from 0 would say, a logarithm has not."""
    import altair as alt

    names = [panel.y.names[round(place)] for place in mark.places.tolist()]
    rows = _rows(
        x=_plain(mark.lengths),
        y=_plain(mark.places),
        low=_plain(mark.low),
        high=_plain(mark.high),
        pick=mark.picks or [None] * len(names),
        what=names,
    )
    x, y = _places(panel)
    rule = _base(rows).mark_rule(color=_colour(mark.colour), strokeWidth=2)
    low = alt.X("low:Q", **_scaled(panel.x, "x"))
    yield rule.encode(low, y, alt.X2("high"), opacity=_opacity(0.7, 0.15))
    told = [
        alt.Tooltip("what:N", title="of"),
        alt.Tooltip("x:Q", title=panel.x.label, format=".4~g"),
    ]
    told += [alt.Tooltip("low:Q", title="from", format=".4~g")]
    told += [alt.Tooltip("high:Q", title="to", format=".4~g")]
    dots = _base(rows).mark_point(
        filled=True, color=_colour(mark.colour), size=80, opacity=1, stroke="var(--paper)",
        strokeWidth=1, shape=SHAPES[shape_of(mark.colour or 0)],
        cursor="pointer" if mark.picks else "default",
    )  # fmt: skip
    yield dots.encode(x, y, opacity=_opacity(1, 0.25), tooltip=told)


def _columns(mark: ColumnMarks, panel: Panel) -> Layer:
    import altair as alt

    rows = _rows(
        x=_plain(mark.low),
        x2=_plain(mark.high),
        y=_plain(mark.heights),
        pick=mark.picks or [None] * len(mark.heights),
    )
    bars = _base(rows).mark_rect(color=_colour(mark.colour), stroke="var(--paper)", strokeWidth=1)
    told = [
        alt.Tooltip("x:Q", title="from", format=".4~g"),
        alt.Tooltip("x2:Q", title="to", format=".4~g"),
        alt.Tooltip("y:Q", title=panel.y.label, format=".3~g"),
    ]
    return bars.encode(
        *_places(panel), alt.X2("x2"), alt.Y2(datum=0), opacity=_opacity(0.8, 0.2), tooltip=told
    )


def _levels(mark: Levels, panel: Panel) -> Layer:
    import altair as alt

    rows = [{"v": value} for value in _plain(mark.values)]
    rule = _base(rows).mark_rule(color=_QUIET, strokeDash=[4, 3], strokeWidth=1)
    if mark.of == "x":
        return rule.encode(alt.X("v:Q", **_scaled(panel.x, "x")))
    return rule.encode(alt.Y("v:Q", **_scaled(panel.y, "y")))


def _ticks(mark: Ticks, panel: Panel) -> Layer:
    import altair as alt

    rows = [{"v": value} for value in _plain(mark.x)]
    tick = _base(rows).mark_tick(color=_QUIET, thickness=1, size=8, yOffset=-4)
    return tick.encode(alt.X("v:Q", **_scaled(panel.x, "x")), alt.Y(value="height"))
