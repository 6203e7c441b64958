"""The numbers of a chart as a table, for those who do not see it."""

from typing import Any

import numpy as np

from numtok.analysis.figures.base import BarMarks, ColumnMarks, LineMark, Panel

_MOST = 120  # rows: a longer table says nothing


def described(panel: Panel) -> tuple[list[str], list[list[str]]] | None:
    """The columns and the rows; None where a chart has so many numbers that they say nothing."""
    lines = [mark for mark in panel.marks if isinstance(mark, LineMark | BarMarks | ColumnMarks)]
    rows: list[list[str]] = []
    for mark in lines:
        if isinstance(mark, LineMark):
            low, high = mark.low, mark.high
            for place in range(len(mark.x)):
                ends = [_told(None if end is None else end[place]) for end in (low, high)]
                rows.append([mark.label, _told(mark.x[place]), _told(mark.y[place]), *ends])
        elif isinstance(mark, BarMarks):
            for place, length in enumerate(mark.lengths):
                name = panel.y.names[round(mark.places[place])]
                ends = [_told(mark.low[place]), _told(mark.high[place])]
                rows.append([mark.label, name, _told(length), *ends])
        else:
            for place, height in enumerate(mark.heights):
                across = f"{_told(mark.low[place])} to {_told(mark.high[place])}"
                rows.append([mark.label, across, _told(height), "", ""])
    if not rows or len(rows) > _MOST:
        return None
    named = bool(panel.y.names)
    columns = ["", "", panel.x.label] if named else ["", panel.x.label, panel.y.label]
    if named and all(row[0] == row[1] for row in rows):
        rows = [row[1:] for row in rows]
        columns = columns[1:]
    columns = [*columns, "from", "to"]
    keep = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    return [columns[k] for k in keep], [[row[k] for k in keep] for row in rows]


def _told(value: Any) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.4g}"
