"""Panels of predictions plotted against true values, and of errors by magnitude and by field."""

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
_BINS, _LEAST = 20, 20  # most bins of magnitude, and fewest numbers in each
_ROOM = 0.04  # margin, as a fraction of the range
_WIDE = 300  # ratio of largest to median value above which an axis is logarithmic
_SMALL = 100.0  # ratio of largest to smallest metric above which the axis is logarithmic
_ASIDE = 0.8  # fraction of the height of a row that several experiments are spread over
_WIDER = 20  # ratio of largest to smallest magnitude above which the axis is logarithmic


class TruthPanel(NamedTuple):
    """A panel of predictions plotted against true values.

    cells
        int64[k]: for each row on the page, the index of its cell in the ``picks`` of the cells; -1
        if the prediction is invalid.
    beyond
        Number of predictions outside the axis. They are drawn at its edge.
    banded
        True if the panel has a band of predicted intervals.
    """

    panel: Panel
    cells: Ints  # [k]
    beyond: int  # predictions outside the axis, which are drawn at its edge
    banded: bool


def scale_for(values: Floats) -> str:
    """Return the name of the axis scale that shows differences between values (float64[n], finite).

    The scale is linear unless the largest magnitude is hundreds of times the median.

    >>> scale_for(np.array([1.0, 2.0, 3.0])), scale_for(np.array([1.0, 2.0, 3e6]))
    ('linear', 'log')
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes) or sizes.max() <= _WIDE * np.median(sizes):
        return "linear"
    return "log" if values.min() > 0 else "signed-log"


def truth_panel(answers: Predictions, rows: Ints) -> TruthPanel:
    """Return a panel of all valid predictions plotted against their true values.

    The plane is divided into cells, and the number of predictions in each cell is shown. Only the
    rows on the page, with the indices ``rows`` int64[k], are drawn as points. If the predictions
    have quantiles, a band shows the median 90% interval.
    """
    axis = axis_of("true value", scale_for(answers.truth), answers.truth, _ROOM)
    assert axis.low is not None and axis.high is not None
    prediction = np.clip(answers.prediction, axis.low, axis.high)
    beyond = int((answers.valid & (prediction != answers.prediction)).sum())
    low, high = drawn(axis, np.array([axis.low, axis.high])).tolist()
    edges = undrawn(axis, np.linspace(low, high, _SIDE + 1))
    edges[0], edges[-1] = axis.low, axis.high
    across, up = (_cell(edges, values) for values in (answers.truth, prediction))
    cell_index = across * _SIDE + up
    valid = np.flatnonzero(answers.valid)
    filled, counts = np.unique(cell_index[valid], return_counts=True)
    marks: list[Mark] = [
        CellMarks(
            label="all predictions",
            left=edges[filled // _SIDE],
            right=edges[filled // _SIDE + 1],
            bottom=edges[filled % _SIDE],
            top=edges[filled % _SIDE + 1],
            counts=counts,
            colour=0,
            picks=tuple(f"cell:{index}" for index in range(len(filled))),
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
    cells[ids] = np.searchsorted(filled, cell_index[held])
    y_axis = replace(axis, label="prediction")
    panel = Panel(x=axis, y=y_axis, marks=marks, diagonal="prediction = true value")
    return TruthPanel(panel, cells, beyond, answers.quantiles is not None)


def _cell(edges: Floats, values: Floats) -> Ints:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def _interval_band(answers: Predictions, axis: Axis) -> Band:
    """Return a band from the median 5% quantile to the median 95% quantile, in bins of true values
    with equal counts.
    """
    assert answers.quantiles is not None
    complete = np.flatnonzero(~np.isnan(answers.quantiles).any(axis=1))
    bins = binned(answers.truth[complete])
    columns = [QUANTILES.index(level) for level in (0.05, 0.95)]
    middle = np.array([np.median(answers.truth[complete[members]]) for members in bins])
    ends = [
        np.array([np.median(answers.quantiles[complete[members], column]) for members in bins])
        for column in columns
    ]
    low, high = (np.clip(end, axis.low, axis.high) for end in ends)
    return Band(label="middle 90% predicted", x=middle, low=low, high=high, colour=1)


def binned(values: Floats) -> list[Ints]:
    """Divide the indices of values float64[n] into bins by value, with about equal counts.

    Equal values share a bin.

    >>> [members.tolist() for members in binned(np.array([2.0, 1.0, 2.0]))]
    [[1, 0, 2]]
    """
    order = np.argsort(values, kind="stable")
    count = max(1, min(_BINS, len(order) // _LEAST))
    ends = np.linspace(0, len(order), count + 1).round().astype(np.int64)[1:-1]
    ordered = values[order]
    cuts = np.unique(np.searchsorted(ordered, ordered[ends], side="left")) if len(ends) else ends
    return [members for members in np.split(order, cuts) if len(members)]


class SizePanel(NamedTuple):
    """A panel of errors by the magnitude of the true value.

    bins
        int64[n]: bin of each number; -1 if the true value is 0.
    ranges
        For each bin: the key that selects it, its smallest magnitude and its largest magnitude.
    """

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
    """Return a panel of the absolute error plotted against the magnitude of the true value.

    The median and the quartiles of |prediction - true value| are shown in bins of magnitude with
    equal counts. Each set of predictions has a line; all sets must predict the same numbers.

    relative
        True to divide each error by |true value|.
    kind
        Prefix of the keys that select a bin, as in ``size:3``.

    The result is None if all true values are 0, or if no other true value has a valid prediction.
    """
    first = next(iter(labelled.values()))
    own = np.flatnonzero(first.truth != 0)
    if not len(own):
        return None
    every = np.abs(first.truth)
    bins = [own[members] for members in binned(every[own])]
    bin_of = np.full(len(every), -1)
    for index, members in enumerate(bins):
        bin_of[members] = index
    names = [f"{kind}:{index}" for index in range(len(bins))]
    lines = (
        _size_line(label, answers, bins, names=names, colour=colours[label], relative=relative)
        for label, answers in labelled.items()
    )
    marks = [line for line in lines if line is not None]
    if not marks:
        return None
    ends = np.concatenate([column for mark in marks for column in (mark.y, mark.low, mark.high)])
    scale = "log" if ends.min() > 0 else "signed-log"
    x_scale = "log" if every[own].max() > _WIDER * every[own].min() else "linear"
    error_label = "|error| / |true value|" if relative else "|error|"
    x_axis = axis_of("|true value|", x_scale, every[own], _ROOM)
    y_axis = axis_of(error_label, scale, ends, _ROOM)
    ranges = [
        (name, float(every[members].min()), float(every[members].max()))
        for name, members in zip(names, bins, strict=True)
    ]
    return SizePanel(Panel(title=title, x=x_axis, y=y_axis, marks=marks), bin_of, ranges)


def _size_line(
    label: str,
    answers: Predictions,
    bins: Sequence[Ints],
    names: Sequence[str],
    colour: int,
    relative: bool,
) -> LineMark | None:
    """Return the line of one set of predictions; None if no bin has a valid prediction."""
    size = np.abs(answers.truth)
    with np.errstate(over="ignore"):
        off = np.abs(answers.prediction - answers.truth)
        off = off / np.where(size == 0, 1, size) if relative else off
    points, picks = [], []
    for name, members in zip(names, bins, strict=True):
        kept = members[answers.valid[members] & np.isfinite(off[members])]
        if len(kept):
            quartiles = np.quantile(off[kept], [0.5, 0.25, 0.75]).tolist()
            points.append((float(np.median(size[kept])), *quartiles))
            picks.append(name)
    return LineMark.of(label, points, colour, tuple(picks)) if points else None


def lined_up(
    figures: Mapping[str, Figure | SeedStatistics],
    label: str,
    kind: str,
    colours: Mapping[str, int] | None = None,
) -> Panel | None:
    """Return a panel of metric values, with one row per value and a confidence interval for each.

    label
        Label of the value axis.
    kind
        Prefix of the keys by which charts select a value, as in ``field:NAME``.
    colours
        Color index of each value, keyed by name; values without one are gray.

    The result is None if no value is known.
    """
    shown = {name: figure for name, figure in figures.items() if figure.value is not None}
    marks = []
    for index, (name, figure) in enumerate(shown.items()):
        row = index, figure.value, figure.low, figure.high
        colour = 0 if colours is None else colours.get(name)
        marks.append(BarMarks.of(name, [row], colour, (f"{kind}:{name}",)))
    return _below_each_other(marks, tuple(shown), label)


def side_by_side_panel(
    figures: Mapping[str, Mapping[str, Figure]], metric: str, colours: Mapping[str, int]
) -> Panel | None:
    """Return a panel of a metric per field, with several experiments side by side.

    figures
        Metric values, keyed by experiment label and then by field.

    The result is None if no value is known.
    """
    names = tuple(dict.fromkeys(field for fields in figures.values() for field in fields))
    marks = []
    for index, (label, fields) in enumerate(figures.items()):
        aside = _ASIDE * ((index + 1) / (len(figures) + 1) - 0.5)
        rows = [
            (row + aside, figure.value, figure.low, figure.high)
            for row, name in enumerate(names)
            if (figure := fields.get(name)) is not None and figure.value is not None
        ]
        if rows:
            picks = (f"label:{label}",) * len(rows)
            marks.append(BarMarks.of(label, rows, colours[label], picks))
    return _below_each_other(marks, names, metric)


def _below_each_other(
    marks: Sequence[BarMarks], names: tuple[str, ...], label: str
) -> Panel | None:
    """Return a panel with one interval per name. An unknown end is drawn at the value."""
    if not marks:
        return None
    bounded = [
        replace(
            mark,
            low=np.where(np.isnan(mark.low), mark.lengths, mark.low),
            high=np.where(np.isnan(mark.high), mark.lengths, mark.high),
        )
        for mark in marks
    ]
    ends = np.concatenate([end for mark in bounded for end in (mark.lengths, mark.low, mark.high)])
    x_axis = axis_of(label, _scale_of_values(ends), ends, _ROOM)
    return Panel(x=x_axis, y=Axis(names=names), marks=bounded)


def _scale_of_values(values: Floats) -> str:
    return "log" if values.min() > 0 and values.max() > _SMALL * values.min() else "linear"
