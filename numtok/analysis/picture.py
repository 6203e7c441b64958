"""What a figure shows, as plain columns: panels with axes, and marks on them.

A kind makes a :class:`Picture` from what it read, and ``drawing`` draws any picture, so tests check
values and no kind depends on the renderer. Marks with one label have one entry in the legend;
marks with one ``colour``, a place in the palette, have one colour in all panels, and None
is the grey of what is given. On a page what is shown can be chosen: ``picks`` has, of each part of
a mark, a key such as ``slot:area``, which rows and other marks have as well; none: nothing can be.
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
    """One axis.

    label
        What it shows, with its unit.
    scale
        ``signed-log`` is linear up to ``linear_below`` on both sides of 0 and logarithmic beyond.
    low, high
        Its ends; None: as far as the marks go.
    names
        What stands at 0, 1, 2, ... in place of numbers.
    ticks
        The only values that are written beside it; none: as many as fit.
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
    """A dot at each (x, y); at the edge of the panel a diamond, for what lies beyond it.

    ``rows`` says which of a page's rows each of them is; ``pick`` is what all of them can be chosen
    as.
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
    """What lies between ``low`` and ``high`` at each x."""

    label: str
    x: Floats
    low: Floats
    high: Floats
    colour: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BarMarks:
    """A dot at each length along the x axis, at its place of the y axis, with its interval."""

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
        """Make marks from rows of (place, length, low, high), None for an unknown end."""
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
    """How many lie in each rectangle from (left, bottom) to (right, top); more are darker."""

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
    """One pair of axes; ``diagonal`` draws the line on which y is x, of a square panel."""

    title: str = ""
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    diagonal: str | None = None  # its label


@dataclass(frozen=True)
class Picture:
    """All of a figure: panels, row by row, and sentences that stand below them."""

    panels: Sequence[Panel]
    notes: Sequence[str] = field(default=())


def axis_of(label: str, scale: str, values: Floats, margin: float) -> Axis:
    """An axis over values float64[n], all finite, and beyond them by a share of their range.

    The share is one of the range as it is drawn. Linear up to the fifth percentile of what is not
    0 is a signed logarithm, rounded down to a power of ten.

    >>> axis_of("y", "linear", np.array([0.0, 10.0]), 0.1)
    Axis(label='y', scale='linear', low=-1.0, high=11.0, linear_below=1.0, names=(), ticks=())
    >>> axis_of("y", "log", np.array([1.0, 100.0]), 0.5).high
    1000.0

    Raises UsageError where a logarithm is asked for of what is not above 0.
    """
    low, high = float(values.min()), float(values.max())
    if scale == "log" and low <= 0:
        raise UsageError(
            f"--scale log shows numbers above 0, and the least of {label!r} is {low:g}; "
            "use signed-log"
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
    """Where values [n] lie on an axis, in a unit of its own; for a logarithm they are above 0.

    >>> drawn(Axis(label="y", scale="signed-log"), np.array([-100.0, 0.5, 10.0])).tolist()
    [-3.0, 0.5, 2.0]
    """
    if axis.scale == "linear":
        return values
    if axis.scale == "log":
        return np.log10(values)
    parts = np.abs(values) / axis.linear_below
    beyond = 1 + np.log10(np.maximum(parts, 1))
    found: Floats = np.copysign(np.where(parts <= 1, parts, beyond), values)
    return found


def undrawn(axis: Axis, places: Floats) -> Floats:
    """The inverse of :func:`drawn`: the values [n] at some places [n]."""
    if axis.scale == "linear":
        return places
    if axis.scale == "log":
        return np.asarray(10.0**places)
    sizes = np.abs(places)
    parts = np.where(sizes <= 1, sizes, 10.0 ** (sizes - 1))
    return np.copysign(axis.linear_below * parts, places)


def some(count: int, most: int) -> Ints:
    """int64[k]: at most so many of ``count`` places, in order, drawn at random but always the same.

    >>> some(3, 5).tolist()
    [0, 1, 2]
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])
