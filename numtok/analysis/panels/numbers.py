"""Predictions over truths, errors by magnitude and by slot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from numtok.analysis.picture import (
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
from numtok.evaluation.comparison.seeds import SeedStatistics
from numtok.metrics.base import Predictions
from numtok.reports import QUANTILES, Figure

_SIDE = 40  # cells along each axis
_BINS, _LEAST = 20, 20  # of magnitude: at most so many, with so many numbers each at least
_ROOM = 0.04  # of the range of the truth, above and below
_WIDE = 300  # times the median: from there on an axis is logarithmic
_SMALL = 100.0  # times the least: from there on figures are drawn on a logarithm
_ASIDE = 0.8  # of the room of a slot: over which those of several experiments are spread
_WIDER = 20  # times the least: from there on magnitudes are drawn on a logarithm


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


def truth_panel(answers: Predictions, rows: Ints) -> TruthPanel:
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
            label="all predictions",
            left=edges[filled // _SIDE],
            right=edges[filled // _SIDE + 1],
            bottom=edges[filled % _SIDE],
            top=edges[filled % _SIDE + 1],
            counts=counts,
            colour=0,
            picks=tuple(f"cell:{one}" for one in range(len(filled))),
        )
    ]
    if answers.quantiles is not None:
        marks.append(_interval_band(answers, axis))
    held = rows[answers.valid[rows]]
    ids = np.flatnonzero(answers.valid[rows])
    marks.append(
        Points(
            label="one prediction", x=answers.truth[held], y=prediction[held], colour=0, rows=ids
        )
    )
    cells = np.full(len(rows), -1)
    cells[ids] = np.searchsorted(filled, place[held])
    y_axis = replace(axis, label="prediction")
    panel = Panel(x=axis, y=y_axis, marks=marks, diagonal="prediction = truth")
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
    return Band(label="middle 90% predicted", x=middle, low=low, high=high, colour=1)


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
    """Errors by magnitude, of each of n numbers its bin (-1 for none), and of each bin the key that
    it can be picked by with its smallest and its largest magnitude."""

    panel: Panel
    bins: Ints  # [n]
    ranges: list[tuple[str, float, float]]


def size_panel(
    labelled: Mapping[str, Predictions],
    colours: Mapping[str, int],
    title: str = "",
    *,
    relative: bool = True,
    kind: str = "size",
) -> SizePanel | None:
    """The median of |prediction - truth|, where it is ``relative`` over |truth|, with its
    quartiles, in bins of magnitude with as many numbers each, a line for each of some predictions
    of the same numbers; ``kind`` is what bins can be picked as.

    None where all truths are 0, or no other one has a valid prediction.
    """
    first = next(iter(labelled.values()))
    own = np.flatnonzero(first.truth != 0)
    if not len(own):
        return None
    every = np.abs(first.truth)
    bins = [own[one] for one in binned(every[own])]
    place = np.full(len(every), -1)
    for index, one in enumerate(bins):
        place[one] = index
    names = [f"{kind}:{index}" for index in range(len(bins))]
    lines = (
        _size_line(label, one, bins, names=names, colour=colours[label], relative=relative)
        for label, one in labelled.items()
    )
    marks = [line for line in lines if line is not None]
    if not marks:
        return None
    ends = np.concatenate([one for mark in marks for one in (mark.y, mark.low, mark.high)])
    scale = "log" if ends.min() > 0 else "signed-log"
    x_scale = "log" if every[own].max() > _WIDER * every[own].min() else "linear"
    told = "|prediction - truth| / |truth|" if relative else "|prediction - truth|"
    x_axis = axis_of("|truth|", x_scale, every[own], _ROOM)
    y_axis = axis_of(told, scale, ends, _ROOM)
    ranges = [
        (name, float(every[one].min()), float(every[one].max()))
        for name, one in zip(names, bins, strict=True)
    ]
    return SizePanel(Panel(title=title, x=x_axis, y=y_axis, marks=marks), place, ranges)


def _size_line(
    label: str,
    answers: Predictions,
    bins: Sequence[Ints],
    names: Sequence[str],
    colour: int,
    relative: bool,
) -> LineMark | None:
    """The line of one of them; None where no bin has a valid prediction."""
    size = np.abs(answers.truth)
    with np.errstate(over="ignore"):
        off = np.abs(answers.prediction - answers.truth)
        off = off / np.where(size == 0, 1, size) if relative else off
    found, picks = [], []
    for name, one in zip(names, bins, strict=True):
        kept = one[answers.valid[one] & np.isfinite(off[one])]
        if len(kept):
            quartiles = np.quantile(off[kept], [0.5, 0.25, 0.75]).tolist()
            found.append((float(np.median(size[kept])), *quartiles))
            picks.append(name)
    return LineMark.of(label, found, colour, tuple(picks)) if found else None


def lined_up(
    figures: Mapping[str, Figure | SeedStatistics],
    label: str,
    kind: str,
    colours: Mapping[str, int] | None = None,
) -> Panel | None:
    """Draw one value per name with its interval, one below the other.

    ``kind`` is the kind of key that charts pick them by. None if no value is known.
    """
    known = {name: one for name, one in figures.items() if one.value is not None}
    marks = []
    for place, (name, one) in enumerate(known.items()):
        row, colour = (place, one.value, one.low, one.high), (colours or {}).get(name, 0)
        marks.append(BarMarks.of(name, [row], colour, (f"{kind}:{name}",)))
    return _below_each_other(marks, tuple(known), label)


def beside_panel(
    figures: Mapping[str, Mapping[str, Figure]], metric: str, colours: Mapping[str, int]
) -> Panel | None:
    """Draw a metric of each slot, by label and slot, with the labels next to each other.

    None if no value is known.
    """
    names = tuple(dict.fromkeys(slot for one in figures.values() for slot in one))
    marks = []
    for index, (label, slots) in enumerate(figures.items()):
        aside = _ASIDE * ((index + 1) / (len(figures) + 1) - 0.5)
        rows = [
            (place + aside, one.value, one.low, one.high)
            for place, name in enumerate(names)
            if (one := slots.get(name)) is not None and one.value is not None
        ]
        if rows:
            picks = (f"label:{label}",) * len(rows)
            marks.append(BarMarks.of(label, rows, colours[label], picks))
    return _below_each_other(marks, names, metric)


def _below_each_other(
    marks: Sequence[BarMarks], names: tuple[str, ...], label: str
) -> Panel | None:
    """Draw intervals over names; an unknown end is at the value."""
    if not marks:
        return None
    known = [
        replace(
            one,
            low=np.where(np.isnan(one.low), one.lengths, one.low),
            high=np.where(np.isnan(one.high), one.lengths, one.high),
        )
        for one in marks
    ]
    ends = np.concatenate([end for one in known for end in (one.lengths, one.low, one.high)])
    x_axis = axis_of(label, _scale_of_figures(ends), ends, _ROOM)
    return Panel(x=x_axis, y=Axis(names=names), marks=known)


def _scale_of_figures(values: Floats) -> str:
    return "log" if values.min() > 0 and values.max() > _SMALL * values.min() else "linear"
