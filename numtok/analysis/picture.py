"""The content of a figure as plain columns: panels with axes, and marks on them.

A kind of figure returns a :class:`Picture`, and ``drawing`` draws any picture, so tests check
values and no kind depends on the renderer. Marks with the same label share one entry of the legend;
marks with the same ``colour``, an index of the palette, have the same color in all panels, and None
is gray. On a page, parts of marks can be selected: ``picks`` holds a key such as ``field:area`` for
each part, shared with rows and other marks; without keys, nothing can be selected.
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
        ``signed-log`` is linear up to ``linear_below`` on both sides of 0 and logarithmic beyond.
    low, high
        Ends of the axis; None: those of the marks.
    names
        Names in place of the numbers 0, 1, 2, ...
    ticks
        Labeled values; empty: as many as fit.
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
    """A dot at each (x, y); a diamond at the edge of the panel for points beyond it.

    ``rows`` holds the row of the page that each point belongs to; ``pick`` is the key that selects
    all of them.
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
    """A line through each (x, y) in order; ``dots`` marks each of them.

    ``low`` and ``high`` are the ends of an interval at each, NaN for none.
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
        """Make a line with dots from rows of (x, y, low, high), None for an unknown end."""
        x, y, low, high = np.array(rows, np.float64).T  # None becomes NaN
        return cls(label=label, x=x, y=y, colour=colour, dots=True, low=low, high=high, picks=picks)


@dataclass(frozen=True, eq=False, kw_only=True)
class Band:
    """The area between ``low`` and ``high`` over x."""

    label: str
    x: Floats
    low: Floats
    high: Floats
    colour: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BarMarks:
    """A dot at each length along the x axis, at its position on the y axis, with its interval."""

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
        """Make marks from rows of (position, length, low, high), None for an unknown end."""
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
    """A histogram: a column upwards from 0 over each [low, high) of the x axis."""

    label: str
    low: Floats
    high: Floats
    heights: Floats
    colour: int | None = None
    picks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class CellMarks:
    """Counts in rectangles from (left, bottom) to (right, top); higher counts are darker."""

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
    """A small stroke on the x axis at each value."""

    label: str
    x: Floats


@dataclass(frozen=True, eq=False)
class Levels:
    """A dashed line across the panel at each value of the x or the y axis."""

    label: str
    values: Floats
    of: Literal["x", "y"]


Mark = Points | LineMark | Band | BarMarks | ColumnMarks | CellMarks | Ticks | Levels


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes with marks; ``diagonal`` is the label of the line y = x of a square panel."""

    title: str = ""
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    diagonal: str | None = None  # its label


@dataclass(frozen=True)
class Picture:
    """A complete figure: panels, row by row, and notes below them."""

    panels: Sequence[Panel]
    notes: Sequence[str] = field(default=())


def axis_of(label: str, scale: str, values: Floats, margin: float) -> Axis:
    """Return an axis over finite values float64[n] with a margin, a fraction of their range as
    drawn.

    A signed logarithm is linear up to the fifth percentile of the nonzero magnitudes, rounded down
    to a power of ten.

    >>> axis_of("y", "linear", np.array([0.0, 10.0]), 0.1)
    Axis(label='y', scale='linear', low=-1.0, high=11.0, linear_below=1.0, names=(), ticks=())
    >>> axis_of("y", "log", np.array([1.0, 100.0]), 0.5).high
    1000.0

    Raises UsageError for a logarithm of values that are not above 0.
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
    """Return the coordinates of values [n] on an axis; for a logarithm, values must be above 0.

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
    """Invert :func:`drawn`: return the values [n] at coordinates [n]."""
    if axis.scale == "linear":
        return coordinates
    if axis.scale == "log":
        return np.asarray(10.0**coordinates)
    sizes = np.abs(coordinates)
    parts = np.where(sizes <= 1, sizes, 10.0 ** (sizes - 1))
    return np.copysign(axis.linear_below * parts, coordinates)


def some(count: int, most: int) -> Ints:
    """Return at most ``most`` of ``count`` indices, int64[k], in order: a random subset, the same
    in every call.

    >>> some(3, 5).tolist()
    [0, 1, 2]
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])
