"""Predictions over truths, errors by magnitude and by slot."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numtok.analysis.figures.base import (
    Axis,
    Band,
    BarMarks,
    CellMarks,
    LineMark,
    Mark,
    Panel,
    Points,
    axis_of,
    drawn,
    undrawn,
)
from numtok.arrays import Floats, Ints
from numtok.metrics.base import Predictions
from numtok.reports import QUANTILES, Figure

_SIDE = 40  # cells along each axis
_BINS, _LEAST = 16, 8  # of magnitude: at most so many, with so many numbers each at least
_ROOM = 0.04  # of the range of the truth, above and below
_WIDE = 300  # times the median: from there on an axis is logarithmic
_SMALL = 100.0


class TruthPanel(NamedTuple):
    """Predictions over truths, and of each row that is held the cell that it lies in: a place among
    the marks' picks, -1 for none."""

    panel: Panel
    cells: Ints  # [k]
    beyond: int  # predictions outside the axis, which stand at its edge
    banded: bool


def scale_for(values: Floats) -> str:
    """The scale on which values (float64[n], finite) can be told apart: linear, unless the largest
    are hundreds of times the median.

    >>> scale_for(np.array([1.0, 2.0, 3.0])), scale_for(np.array([1.0, 2.0, 3e6]))
    ('linear', 'log')
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes) or sizes.max() <= _WIDE * np.median(sizes):
        return "linear"
    return "log" if values.min() > 0 else "signed-log"


def truth_panel(answers: Predictions, rows: Ints, title: str = "") -> TruthPanel:
    """All valid predictions over their truths in cells, the rows that are held (int64[k]) as points
    over them, and the median 90% interval, where there are quantiles."""
    axis = axis_of("truth", scale_for(answers.truth), answers.truth, _ROOM)
    assert axis.low is not None and axis.high is not None
    prediction = np.clip(answers.prediction, axis.low, axis.high)
    beyond = int((answers.valid & (prediction != answers.prediction)).sum())
    low, high = drawn(axis, np.array([axis.low, axis.high])).tolist()
    edges = undrawn(axis, np.linspace(low, high, _SIDE + 1))
    edges[0], edges[-1] = axis.low, axis.high
    across, up = (_cell(edges, values) for values in (answers.truth, prediction))
    place = across * _SIDE + up
    known = np.flatnonzero(answers.valid)
    filled, counts = np.unique(place[known], return_counts=True)
    marks: list[Mark] = [
        CellMarks(
            "all predictions",
            edges[filled // _SIDE],
            edges[filled // _SIDE + 1],
            edges[filled % _SIDE],
            edges[filled % _SIDE + 1],
            counts,
            0,
            tuple(f"cell:{one}" for one in range(len(filled))),
        )
    ]
    if answers.quantiles is not None:
        marks.append(_interval_band(answers, axis))
    held = rows[answers.valid[rows]]
    ids = np.flatnonzero(answers.valid[rows])
    marks.append(Points("one prediction", answers.truth[held], prediction[held], 0, rows=ids))
    cells = np.full(len(rows), -1)
    cells[ids] = np.searchsorted(filled, place[held])
    y_axis = Axis("prediction", axis.scale, axis.low, axis.high, axis.linear_below)
    panel = Panel(title, axis, y_axis, marks, diagonal="prediction = truth")
    return TruthPanel(panel, cells, beyond, answers.quantiles is not None)


def _cell(edges: Floats, values: Floats) -> Ints:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def _interval_band(answers: Predictions, axis: Axis) -> Band:
    """The medians of the 5% and the 95% quantile, in bins of the truth of as many numbers each."""
    assert answers.quantiles is not None
    known = np.flatnonzero(~np.isnan(answers.quantiles).any(axis=1))
    bins = binned(answers.truth[known])
    columns = [QUANTILES.index(level) for level in (0.05, 0.95)]
    middle = np.array([np.median(answers.truth[known[one]]) for one in bins])
    ends = [
        np.array([np.median(answers.quantiles[known[one], column]) for one in bins])
        for column in columns
    ]
    low, high = (np.clip(one, axis.low, axis.high) for one in ends)
    return Band("middle 90% predicted", middle, low, high, 1)


def binned(values: Floats) -> list[Ints]:
    """The places of values float64[n] in bins of about as many each, by size; equal values share
    one.

    >>> [one.tolist() for one in binned(np.array([2.0, 1.0, 2.0]))]
    [[1, 0, 2]]
    """
    order = np.argsort(values, kind="stable")
    count = max(1, min(_BINS, len(order) // _LEAST))
    ends = np.linspace(0, len(order), count + 1).round().astype(np.int64)[1:-1]
    ordered = values[order]
    cuts = np.unique(np.searchsorted(ordered, ordered[ends], side="left")) if len(ends) else ends
    return [one for one in np.split(order, cuts) if len(one)]


class SizePanel(NamedTuple):
    """Errors by magnitude, and of each number its bin: -1 for none."""

    panel: Panel
    bins: Ints  # [n]


def size_panel(
    labelled: Mapping[str, Predictions], colours: Mapping[str, int], title: str = ""
) -> SizePanel | None:
    """The median of |prediction - truth| / |truth| with its quartiles, in bins of magnitude with as
    many numbers each, a line for each of some predictions of the same numbers.

    None where all truths are 0.
    """
    first = next(iter(labelled.values()))
    own = np.flatnonzero(first.truth != 0)
    if not len(own):
        return None
    sizes = np.abs(first.truth[own])
    bins = [own[one] for one in binned(sizes)]
    place = np.full(len(first.truth), -1)
    for index, one in enumerate(bins):
        place[one] = index
    marks: list[Mark] = []
    every: list[Floats] = []
    for label, answers in labelled.items():
        with np.errstate(over="ignore"):
            off = np.abs(answers.prediction - answers.truth) / np.abs(
                np.where(answers.truth == 0, 1, answers.truth)
            )
        found = []
        for index, one in enumerate(bins):
            kept = one[answers.valid[one] & np.isfinite(off[one])]
            if len(kept):
                middle = float(np.median(np.abs(answers.truth[one])))
                found.append((index, middle, *np.quantile(off[kept], [0.5, 0.25, 0.75]).tolist()))
        if not found:
            continue
        columns = np.array(found, np.float64).T
        which, x, y, low, high = columns
        picks = tuple(f"size:{int(one)}" for one in which)
        dots = LineMark(label, x, y, colours[label], dots=True, low=low, high=high, picks=picks)
        marks.append(dots)
        every += [y, low, high]
    if not marks:
        return None
    ends = np.concatenate(every)
    scale = "log" if ends.min() > 0 else "signed-log" if ends.any() else "linear"
    x_scale = "log" if sizes.max() > 20 * sizes.min() else "linear"
    y_axis = axis_of("relative error", scale, ends, _ROOM)
    return SizePanel(Panel(title, axis_of("|truth|", x_scale, sizes, _ROOM), y_axis, marks), place)


def slots_panel(figures: Mapping[str, Figure], metric: str, kind: str = "slot") -> Panel | None:
    """A metric of each slot, or of each value of a group, with its interval; None where none has
    one."""
    return lined_up(
        {name: (one.value, one.low, one.high) for name, one in figures.items()}, metric, kind
    )


def lined_up(
    figures: Mapping[str, tuple[float | None, float | None, float | None]],
    label: str,
    kind: str,
    colours: Mapping[str, int] | None = None,
) -> Panel | None:
    """One figure a name, with its interval, one below the other; ``kind`` is what they can be
    picked as."""
    known = {name: one for name, one in figures.items() if one[0] is not None}
    if not known:
        return None
    columns = np.array(
        [
            (value, value if low is None else low, value if high is None else high)
            for value, low, high in known.values()
        ],
        np.float64,
    ).T
    names = tuple(known)
    marks: list[Mark] = [
        BarMarks(
            name,
            np.array([float(place)]),
            columns[0][[place]],
            columns[1][[place]],
            columns[2][[place]],
            (colours or {}).get(name, 0),
            (f"{kind}:{name}",),
        )
        for place, name in enumerate(names)
    ]
    positive = columns[columns > 0]
    scale = "linear"
    if len(positive) == columns.size and columns.max() > _SMALL * columns.min():
        scale = "log"
    return Panel("", axis_of(label, scale, columns.ravel(), _ROOM), Axis("", names=names), marks)


def picks_of(rows: Ints, cells: Ints, sizes: Ints | None, slots: Sequence[str]) -> list[list[str]]:
    """Of each row that is held (int64[k]) the keys of the marks that stand for it."""
    found = []
    for place, row in enumerate(rows.tolist()):
        keys = [f"slot:{slots[row]}"]
        if cells[place] >= 0:
            keys.append(f"cell:{cells[place]}")
        if sizes is not None and sizes[row] >= 0:
            keys.append(f"size:{sizes[row]}")
        found.append(keys)
    return found
