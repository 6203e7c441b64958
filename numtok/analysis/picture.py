"""Content of a figure as plain columns: panels with axes, and marks on them.

Each figure kind returns a :class:`Picture`, and ``drawing`` draws it. Figure kinds do not depend on
the renderer, and tests can check the values.

Marks with the same label share one legend entry. ``colour`` is an index into the palette, so marks
with the same index have the same color in all panels; None is gray. On an HTML page, parts of a
mark can be selected: ``picks`` contains the key of each part, such as ``field:area``. Selecting a
part also selects the rows and the parts of other marks that have the same key. Without keys,
nothing can be selected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.errors import UsageError

Scale = Literal["linear", "log", "signed-log"]
SCALES = ("linear", "log", "signed-log")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis of a panel.

    label
        Quantity on the axis, with its unit.
    scale
        One of :data:`SCALES`. ``signed-log`` is linear up to ``linear_below`` on both sides of 0
        and logarithmic beyond.
    low, high
        Ends of the axis; None to fit the marks.
    names
        Names that replace the numbers 0, 1, 2, ...
    ticks
        Values that are labeled; if empty, they are chosen automatically.
    """

    label: str = ""
    scale: str = "linear"
    low: float | None = None
    high: float | None = None
    linear_below: float = 1.0
    names: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Dots at (x, y). With ``at_edge``, they are drawn as diamonds at the edge of the panel, to
    mark points beyond it.

    rows
        Index of each point's row in the list of rows on the HTML page.
    pick
        Key that selects all points together.
    """

    label: str
    x: Floats
    y: Floats
    colour: int | None = None
    at_edge: bool = False
    rows: Ints | None = None
    pick: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LineMark:
    """A line through the points (x, y) in order, with a dot at each point if ``dots``.

    ``low`` and ``high`` are the ends of an interval at each point, or NaN.
    """

    label: str
    x: Floats
    y: Floats
    colour: int | None = None
    dots: bool = False
    low: Floats | None = None
    high: Floats | None = None
    picks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        label: str,
        rows: Sequence[tuple[float | None, ...]],
        colour: int | None,
        picks: tuple[str, ...] = (),
    ) -> "LineMark":
        """Build a line with dots from rows of (x, y, low, high). An unknown interval end is
        None."""
        x, y, low, high = np.array(rows, np.float64).T  # None becomes NaN
        return cls(label=label, x=x, y=y, colour=colour, dots=True, low=low, high=high, picks=picks)


@dataclass(frozen=True, eq=False, kw_only=True)
class Band:
    """An area between ``low`` and ``high`` at each x."""

    label: str
    x: Floats
    low: Floats
    high: Floats
    colour: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BarMarks:
    """Dots with intervals in named rows: ``lengths`` are their x coordinates, and ``places`` are
    their y coordinates."""

    label: str
    places: Floats
    lengths: Floats
    low: Floats
    high: Floats
    colour: int | None = None
    picks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        label: str,
        rows: Sequence[tuple[float | None, ...]],
        colour: int | None,
        picks: tuple[str, ...] = (),
    ) -> "BarMarks":
        """Build marks from rows of (position, length, low, high). An unknown interval end is
        None."""
        places, lengths, low, high = np.array(rows, np.float64).T  # None becomes NaN
        return cls(
            label=label,
            places=places,
            lengths=lengths,
            low=low,
            high=high,
            colour=colour,
            picks=picks,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnMarks:
    """A histogram whose columns have the given ``heights``. ``low`` and ``high`` are the ends of
    each column on the x axis."""

    label: str
    low: Floats
    high: Floats
    heights: Floats
    colour: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CellMarks:
    """Counts in rectangles from (left, bottom) to (right, top). Higher counts are darker."""

    label: str
    left: Floats
    right: Floats
    bottom: Floats
    top: Floats
    counts: Ints
    colour: int | None = None
    picks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Ticks:
    """Small strokes on the x axis, one at each of the values ``x``."""

    label: str
    x: Floats


@dataclass(frozen=True, eq=False)
class Levels:
    """Dashed lines across the panel, one at each of ``values`` on the x or y axis."""

    label: str
    values: Floats
    of: Literal["x", "y"]


Mark = Points | LineMark | Band | BarMarks | ColumnMarks | CellMarks | Ticks | Levels


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes with marks. ``diagonal`` is the label of the line y = x in a square panel;
    None for no line."""

    title: str = ""
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    diagonal: str | None = None  # its label


@dataclass(frozen=True)
class Picture:
    """Content of a complete figure: its panels, row by row, and notes below them."""

    panels: Sequence[Panel]
    notes: Sequence[str] = field(default=())


def axis_of(label: str, scale: str, values: Floats, margin: float) -> Axis:
    """Return an axis that covers finite values float64[n].

    ``scale`` is one of :data:`SCALES`. ``margin`` is added at both ends, as a fraction of the range
    in axis coordinates. Raises UsageError if the scale is logarithmic and a value is not above 0.

    A signed logarithm is linear up to the fifth percentile of the nonzero magnitudes, rounded down
    to a power of ten.

    >>> axis_of("y", "linear", np.array([0.0, 10.0]), 0.1)
    Axis(label='y', scale='linear', low=-1.0, high=11.0, linear_below=1.0, names=(), ticks=())
    >>> axis_of("y", "log", np.array([1.0, 100.0]), 0.5).high
    1000.0
    """
    low, high = float(values.min()), float(values.max())
    if scale == "log" and low <= 0:
        raise UsageError(
            f"--scale log needs values above 0, but the smallest {label!r} is {low:g}. "
            "Use --scale signed-log"
        )
    sizes = np.abs(values[values != 0])
    linear_below = 1.0
    if scale == "signed-log" and len(sizes):
        linear_below = float(10.0 ** np.floor(np.log10(np.quantile(sizes, 0.05, method="lower"))))
    bare = Axis(label=label, scale=scale, linear_below=linear_below)
    first, last = drawn(bare, np.array([low, high])).tolist()
    room = margin * (last - first) if first < last else 0.5 * abs(first) or 1.0
    ends = undrawn(bare, np.array([first - room, last + room])).tolist()
    return Axis(label=label, scale=scale, low=ends[0], high=ends[1], linear_below=linear_below)


def drawn(axis: Axis, values: Floats) -> Floats:
    """Return the coordinates of values [n] on an axis. A logarithmic axis requires values above 0.

    >>> drawn(Axis(label="y", scale="signed-log"), np.array([-100.0, 0.5, 10.0])).tolist()
    [-3.0, 0.5, 2.0]
    """
    if axis.scale == "linear":
        return values
    if axis.scale == "log":
        return np.log10(values)
    parts = np.abs(values) / axis.linear_below
    beyond = 1 + np.log10(np.maximum(parts, 1))
    signed: Floats = np.copysign(np.where(parts <= 1, parts, beyond), values)
    return signed


def undrawn(axis: Axis, coordinates: Floats) -> Floats:
    """Return the values [n] at coordinates [n] on an axis. This is the inverse of :func:`drawn`."""
    if axis.scale == "linear":
        return coordinates
    if axis.scale == "log":
        return np.asarray(10.0**coordinates)
    sizes = np.abs(coordinates)
    parts = np.where(sizes <= 1, sizes, 10.0 ** (sizes - 1))
    return np.copysign(axis.linear_below * parts, coordinates)


def some(count: int, most: int) -> Ints:
    """Return at most ``most`` of the indices 0 to ``count`` - 1, int64[k], in ascending order. They
    are a random subset, which is the same in every call.

    >>> some(3, 5).tolist()
    [0, 1, 2]
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])
