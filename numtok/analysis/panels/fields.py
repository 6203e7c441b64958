"""Panels that show the numbers in a field, and the values that each scheme can represent."""

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
#: Limits that keep pages small: the fields with the most numbers, the first schemes, and one value
#: of a scheme in each part of the axis.
FIELDS, SCHEMES, VALUES = 8, 16, 40


class FieldPicture(NamedTuple):
    """The panels for one field.

    numbers, distinct
        Number of sampled numbers, and number of distinct values among them.
    histogram
        Histogram of the sampled numbers.
    grids
        Panel with one row per scheme. The dots in a row are the values that the sampled numbers
        have after encoding and decoding. The row label shows how many of them are distinct.
    """

    field: str
    numbers: int
    distinct: int
    histogram: Panel
    grids: Panel


def field_picture(
    field: str, node: int, counted: Counted, tried: Sequence[SchemeLosses]
) -> FieldPicture | None:
    """Return the panels for a field, or None if its sample has no finite number.

    node
        Node of the field.
    counted
        Statistics of the profiled data.
    tried
        Results for the profiled schemes.
    """
    sample = counted.sample.at(node)
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
        label="fraction of numbers", low=edges[:-1], high=edges[1:], heights=shares, colour=0
    )
    y_axis = Axis(label="fraction of numbers", low=0.0, high=1.06 * float(shares.max()))
    parts = undrawn(axis, np.linspace(low, high, VALUES + 1))[1:-1]
    marks: list[Mark] = []
    names: list[str] = []
    for losses in tried:
        scheme, normalizer = losses.scheme, losses.normalizer
        if normalizer is None or len(names) == SCHEMES:
            continue  # without a normalizer, the profile explains the problem
        encoded = scheme.encode(normalized(numerals, normalizer))
        read = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel).values
        read = read if normalizer.normalizer.identity else normalizer.inverse(read)
        decoded = np.unique(read[np.isfinite(read)])
        left = len(decoded)
        decoded = decoded[(decoded >= axis.low) & (decoded <= axis.high)]
        _, representatives = np.unique(
            np.searchsorted(parts, decoded, side="right"), return_index=True
        )
        decoded = decoded[representatives]
        row = len(names)
        across = np.full(len(decoded), float(row))
        marks.append(
            Points(label=losses.spec, x=decoded, y=across, colour=row, pick=f"label:{losses.spec}")
        )
        names.append(f"{losses.spec} ({left:,})")
    grids = Panel(title="", x=axis, y=Axis(label="", names=tuple(names)), marks=marks)
    distinct = len(np.unique(values))
    return FieldPicture(
        field, len(values), distinct, Panel(title="", x=axis, y=y_axis, marks=[columns]), grids
    )


class FieldPictures:
    """Callable that stores panels for the fields of a profile in ``found``, in the order in which
    the fields appear in the text.

    ``numtok profile`` calls it with the field names keyed by node, the statistics of the data, and
    the results for each scheme. Only the fields with the most numbers are kept.
    """

    def __init__(self) -> None:
        self.found: list[FieldPicture] = []

    def __call__(
        self, names: Mapping[int, str], counted: Counted, tried: Sequence[SchemeLosses]
    ) -> None:
        most = sorted(names, key=lambda node: -counted.tallies[node].numbers)[:FIELDS]
        for node in (node for node in names if node in most):
            if (picture := field_picture(names[node], node, counted, tried)) is not None:
                self.found.append(picture)
