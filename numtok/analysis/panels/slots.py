"""The numbers of a slot, and what the grid of each scheme makes of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numtok.analysis.panels.numbers import scale_for
from numtok.analysis.picture import Axis, ColumnMarks, Mark, Panel, Points, axis_of, drawn, undrawn
from numtok.analysis.profiling.scheme_error import SchemeLosses
from numtok.analysis.profiling.unit import Counted
from numtok.encoding.channel import normalized
from numtok.numerals.column import Numerals

_COLUMNS = 40  # of a histogram
_ROOM = 0.03
#: What is drawn at most, so that pages stay small: of the slots those with the most numbers, of the
#: schemes the first ones, and of the values of a scheme in a slot one in each part of the axis.
SLOTS, SCHEMES, VALUES = 8, 16, 40


class SlotPicture(NamedTuple):
    """The histogram of the numbers of a slot, and the values that each scheme reads back of them,
    with how many these are; ``numbers`` is how many were looked at, ``distinct`` how many values
    they have."""

    slot: str
    numbers: int
    distinct: int
    histogram: Panel
    grids: Panel


def slot_picture(
    slot: str, node: int, found: Counted, tried: Sequence[SchemeLosses]
) -> SlotPicture | None:
    """Of the sample of a slot, which is at that node; None where it has no finite number."""
    sample = found.sample.at(node)
    numerals = Numerals.read(sample.literals)
    finite = np.isfinite(numerals.values)
    if not finite.any():
        return None
    values = numerals.values[finite]
    axis = axis_of("", scale_for(values), values, _ROOM)
    assert axis.low is not None and axis.high is not None
    low, high = drawn(axis, np.array([axis.low, axis.high], np.float64)).tolist()
    edges = undrawn(axis, np.linspace(low, high, _COLUMNS + 1))
    edges[0], edges[-1] = axis.low, axis.high
    counts, _ = np.histogram(values, edges, weights=sample.weights[finite])
    shares = counts / counts.sum()
    columns = ColumnMarks(
        label="share of numbers", low=edges[:-1], high=edges[1:], heights=shares, colour=0
    )
    y_axis = Axis(label="share of numbers", low=0.0, high=1.06 * float(shares.max()))
    parts = undrawn(axis, np.linspace(low, high, VALUES + 1))[1:-1]
    marks: list[Mark] = []
    names: list[str] = []
    for one in tried:
        scheme, normalizer = one.scheme, one.normalizer
        if normalizer is None or len(names) == SCHEMES:
            continue  # of the first, the profile says why it cannot write these numbers
        encoded = scheme.encode(normalized(numerals, normalizer))
        read = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel).values
        read = read if normalizer.normalizer.identity else normalizer.inverse(read)
        told = np.unique(read[np.isfinite(read)])
        left = len(told)
        told = told[(told >= axis.low) & (told <= axis.high)]
        _, one_a_part = np.unique(np.searchsorted(parts, told, side="right"), return_index=True)
        told = told[one_a_part]
        place = len(names)
        across = np.full(len(told), float(place))
        marks.append(
            Points(label=one.spec, x=told, y=across, colour=place, pick=f"label:{one.spec}")
        )
        names.append(f"{one.spec} ({left:,})")
    grids = Panel(title="", x=axis, y=Axis(label="", names=tuple(names)), marks=marks)
    distinct = len(np.unique(values))
    return SlotPicture(
        slot, len(values), distinct, Panel(title="", x=axis, y=y_axis, marks=[columns]), grids
    )


class SlotPictures:
    """Called with what a profile counted: keeps the pictures of the slots, in the order of the
    text."""

    def __init__(self) -> None:
        self.found: list[SlotPicture] = []

    def __call__(
        self, names: Mapping[int, str], found: Counted, tried: Sequence[SchemeLosses]
    ) -> None:
        most = sorted(names, key=lambda node: -found.tallies[node].numbers)[:SLOTS]
        for node in (one for one in names if one in most):
            if (made := slot_picture(names[node], node, found, tried)) is not None:
                self.found.append(made)
