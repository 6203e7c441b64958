"""Pictures drawn with matplotlib, to the bytes of a PNG or an SVG.

matplotlib is loaded here only, inside functions, without pyplot: no window, no display, and none
of the settings of a user's ``matplotlibrc``. In an SVG text stays text.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numtok.analysis.figures._picture import (
    Axis,
    Band,
    BarMarks,
    CellMarks,
    ColumnMarks,
    Levels,
    LineMark,
    Panel,
    Picture,
    Points,
    Ticks,
)
from numtok.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 100
# Told apart with any colour vision (Okabe and Ito 2008); shapes and dashes say the same again.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":")
_GREY = "#666666"
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "numtok",
}
_WIDEST = 4  # panels in a row


def check_matplotlib() -> None:
    """Raises UsageError where the package is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("figure needs the package matplotlib; `pip install matplotlib`") from None


def image(picture: Picture, format: str, size: tuple[int, int] | None, made_by: str) -> bytes:
    """The bytes of a ``png`` or ``svg`` of that size in pixels; ``made_by`` is kept within."""
    import matplotlib
    from matplotlib.figure import Figure

    width, height = size or default_size(picture)
    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)
        matplotlib.rcParams.update(_STYLE)
        figure = Figure((width / _DPI, height / _DPI), dpi=_DPI, layout="constrained")
        columns = columns_of(picture)
        rows = math.ceil(len(picture.panels) / columns)
        grid: Sequence[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        for axes, panel in zip(grid, picture.panels, strict=False):
            _draw(axes, panel)
        for spare in grid[len(picture.panels) :]:
            spare.remove()
        _share_labels(grid, picture.panels, columns)
        _surround(figure, grid[: len(picture.panels)], picture.notes)
        described: dict[str, Any] = {"Title": "numtok", "Description": made_by}
        if format == "svg":
            described |= {"Date": None}
        buffer = io.BytesIO()
        with warnings.catch_warnings():  # both show in the picture itself
            warnings.filterwarnings("ignore", "constrained_layout not applied")  # it is too small
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure.savefig(buffer, format=format, dpi=_DPI, metadata=described)
    return buffer.getvalue()


def columns_of(picture: Picture) -> int:
    """How many panels stand in a row: up to three, or about as many as rows, and at most four."""
    count = len(picture.panels)
    return count if count <= 3 else min(_WIDEST, math.ceil(math.sqrt(count)))


def default_size(picture: Picture) -> tuple[int, int]:
    """800 by 600 for one panel, a place for each of many, and more height for many names."""
    columns = columns_of(picture)
    rows = math.ceil(len(picture.panels) / columns)
    longest = max(len(panel.y.names) for panel in picture.panels)
    width, height = (800, 600) if columns == 1 else (420 * columns, 380 * rows + 80)
    return width, max(height, 140 + 26 * longest)


def _plain(text: str) -> str:
    """A text in which no dollars stand for mathematics."""
    return text.replace("$", r"\$")


def _folded(axes: "Axes", text: str, along: str) -> str:
    """A text in lines that are no longer than the x or the y axis, about."""
    box = axes.get_window_extent()  # before labels take their part of it
    letters = int(0.8 * (box.width if along == "x" else box.height) / 7)
    return "\n".join(textwrap.wrap(_plain(text), max(8, letters)))


def _draw(axes: "Axes", panel: Panel) -> None:
    axes.set_title(_folded(axes, panel.title, "x"))
    for mark in panel.marks:
        match mark:
            case Points():
                _points(axes, mark)
            case LineMark():
                _line(axes, mark)
            case Band():
                axes.fill_between(
                    *(mark.x, mark.low, mark.high),
                    color=_colour(mark.colour),
                    alpha=0.2,
                    linewidth=0,
                    label=mark.label,
                )
            case BarMarks():
                _bars(axes, mark)
            case ColumnMarks():
                _columns(axes, mark)
            case CellMarks():
                _cells(axes, mark)
            case Ticks():
                _ticks(axes, mark)
            case Levels():
                _levels(axes, mark)
    for axis, of in ((panel.x, "x"), (panel.y, "y")):  # now that it is known how far marks go
        _set_axis(axes, axis, of)
    if panel.diagonal is not None:
        ends = axes.get_xlim()
        axes.plot(ends, ends, color=_GREY, linewidth=1, zorder=1.5, label=panel.diagonal)
        axes.set_box_aspect(1)


def _colour(place: int | None) -> str:
    return _GREY if place is None else _COLOURS[place % len(_COLOURS)]


def _points(axes: "Axes", mark: Points) -> None:
    many = len(mark.x)
    size, alpha = (24, 0.9) if mark.at_edge else (16, 0.8) if many < 300 else (8, 0.55)
    axes.scatter(
        *(mark.x, mark.y),
        s=size,
        alpha=alpha,
        marker="D" if mark.at_edge else "o",
        color=_colour(mark.colour),
        linewidths=0,
        label=mark.label,
        clip_on=not mark.at_edge,
        zorder=3 if mark.at_edge else 2,
    )


def _line(axes: "Axes", mark: LineMark) -> None:
    from matplotlib.transforms import ScaledTranslation

    colour, place = _colour(mark.colour), mark.colour or 0
    style: dict[str, Any] = {"color": colour, "label": mark.label, "linewidth": 1.6, "zorder": 2.5}
    aside = 0.0
    if mark.dots:  # 0, 3, -3, 6, ... points aside, so that intervals do not hide each other
        aside = 3 * ((place + 1) // 2) * (1 if place % 2 else -1)
        # Another shape where colours begin again.
        shape = _SHAPES[(place + place // len(_COLOURS)) % len(_SHAPES)]
        style |= {"marker": shape, "markersize": 6}
        style |= {"linestyle": _DASHES[place % len(_DASHES)]}
    inches = axes.figure.dpi_scale_trans
    where = axes.transData + ScaledTranslation(aside / 72, 0, inches)
    axes.plot(mark.x, mark.y, transform=where, **style)
    ends = [mark.y]
    if mark.low is not None and mark.high is not None:
        ends += [mark.low, mark.high]
        axes.vlines(
            *(mark.x, mark.low, mark.high),
            transform=where,
            color=colour,
            linewidth=1.2,
            alpha=0.8,
            zorder=2.4,
        )
    for y in ends:  # matplotlib does not look at what stands aside
        axes.update_datalim(list(zip(mark.x, y, strict=True)))
    axes.autoscale_view()


def _bars(axes: "Axes", mark: BarMarks) -> None:
    axes.barh(mark.places, mark.lengths, height=0.36, color=_colour(mark.colour), label=mark.label)
    axes.hlines(mark.places, mark.low, mark.high, color="#222222", linewidth=1.2, zorder=3)


def _columns(axes: "Axes", mark: ColumnMarks) -> None:
    axes.bar(
        mark.low,
        mark.heights,
        width=mark.high - mark.low,
        align="edge",
        color=_colour(mark.colour),
        alpha=0.75,
        edgecolor="white",
        linewidth=0.5,
        label=mark.label,
    )


def _cells(axes: "Axes", mark: CellMarks) -> None:
    """In one colour, whose strength is the logarithm of the count."""
    strength = np.log1p(mark.counts) / np.log1p(mark.counts.max(initial=1))
    axes.bar(
        mark.left,
        mark.top - mark.bottom,
        width=mark.right - mark.left,
        bottom=mark.bottom,
        align="edge",
        color=[(*_rgb(mark.colour), 0.1 + 0.6 * one) for one in strength.tolist()],
        linewidth=0,
        label=mark.label,
    )


def _rgb(place: int | None) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(_colour(place))


def _ticks(axes: "Axes", mark: Ticks) -> None:
    """On the axis itself: y is a share of the height there."""
    axes.plot(
        *(mark.x, [0.012] * len(mark.x)),
        transform=axes.get_xaxis_transform(),
        marker="|",
        markersize=8,
        markeredgewidth=0.8,
        linestyle="",
        color=_GREY,
        label=mark.label,
    )


def _levels(axes: "Axes", mark: Levels) -> None:
    """One entry in the legend, whatever their number."""
    draw: Callable[..., Any] = axes.axvline if mark.of == "x" else axes.axhline
    for place, value in enumerate(mark.values.tolist()):
        style: dict[str, Any] = {"color": _GREY, "linestyle": (0, (4, 3)), "linewidth": 0.9}
        draw(value, zorder=1.4, label=None if place else mark.label, **style)


def _set_axis(axes: "Axes", axis: Axis, of: str) -> None:
    """Scale, ends and label of the x or the y axis."""
    set_: Callable[..., Any] = getattr(axes, f"set_{of}scale")
    if axis.scale == "signed-log":
        set_("symlog", linthresh=axis.linear_below)
        getattr(axes, f"{of}axis").get_major_locator().set_params(numticks=5)  # they are long
    else:
        set_(axis.scale)
    getattr(axes, f"set_{of}label")(_folded(axes, axis.label, of))
    if axis.low is not None and axis.high is not None:
        getattr(axes, f"set_{of}lim")(axis.low, axis.high)
    if axis.scale == "log":
        _plain_logarithm(getattr(axes, f"{of}axis"))
    if axis.ticks:
        getattr(axes, f"set_{of}ticks")(axis.ticks, [f"{tick:,g}" for tick in axis.ticks])
        getattr(axes, f"set_{of}ticks")([], minor=True)
    if axis.names:
        axes.set_yticks(range(len(axis.names)), list(map(_plain, axis.names)), fontsize=9)
        axes.set_ylim(len(axis.names) - 0.4, -0.6)  # the first on top
        axes.grid(visible=False, axis=of)  # type: ignore[arg-type]


def _plain_logarithm(axis: Any) -> None:
    """Where all numbers of an axis are short as they are, they are written so: 0.02, not 2e-2."""
    low, high = axis.get_view_interval()
    if low < 1e-4 or high > 1e5:
        return
    decades = math.log10(high / low)
    written = range(1, 10) if decades < 0.8 else (2, 5) if decades < 2 else ()

    def between(value: float, place: int | None) -> str:
        first = round(value / 10 ** math.floor(math.log10(value) + 1e-9))
        return f"{value:g}" if first in written else ""

    axis.set_major_formatter(lambda value, place: f"{value:g}")
    axis.set_minor_formatter(between)


def _share_labels(grid: "Sequence[Axes]", panels: Sequence[Panel], columns: int) -> None:
    """Where all panels have one label, it stands at the left and at the bottom alone."""
    for of in ("x", "y"):
        labels = {getattr(panel, of).label for panel in panels}
        if len(labels) > 1:
            continue
        for place in range(len(panels)):
            inside = place % columns if of == "y" else place + columns < len(panels)
            if inside:
                getattr(grid[place], f"set_{of}label")("")


def _surround(figure: "Figure", grid: "Sequence[Axes]", notes: Sequence[str]) -> None:
    """The legend above the panels, the notes below them."""
    entries: dict[str, list[Any]] = {}
    for axes in grid:
        of_panel: dict[str, list[Any]] = {}
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            of_panel.setdefault(label, []).append(handle)
        for label, handles in of_panel.items():
            entries.setdefault(label, handles)
    if entries:
        together: list[Any] = [tuple(handles) for handles in entries.values()]  # line upon band
        figure.legend(
            together,
            [_plain(label) for label in entries],
            loc="outside upper center",
            ncols=_fitting(list(entries), figure.get_figwidth() * _DPI),
            markerscale=1.5,
        )
    if notes:
        letters = int(figure.get_figwidth() * _DPI / 7)
        lines = [line for note in notes for line in textwrap.wrap(note, letters)]
        figure.supxlabel(_plain("\n".join(lines)), fontsize=9, color=_GREY)


def _fitting(labels: Sequence[str], width: float) -> int:
    """How many entries of a legend fit beside each other, at 8 pixels a letter."""
    return max(1, min(len(labels), int(width / (8 * max(map(len, labels)) + 60))))
