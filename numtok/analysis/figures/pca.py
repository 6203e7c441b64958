"""pca: principal components of the embeddings of number tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, Mark, Panel, Picture, Points
from numtok.analysis.probing.probe_records import PROBE, LoadedProbe, TokenComponents
from numtok.store.artifact import Artifact, Resolve

_PARTS = 4  # groups of tokens, by value


@dataclass(frozen=True)
class Pca(FigureKind):
    """Principal components of the embeddings of number tokens, with two panels per probe.

    The first panel shows the first two components, with the tokens in four groups by value. The
    second shows each component plotted against the value.

    Raises UsageError if a probe is not of the kind ``pca``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({PROBE})
    source: ClassVar[str] = "xVal, Section B.5"

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        probes = read_probes("pca", TokenComponents, artifacts)
        return Picture([panel for probed in probes for panel in panels_of(*probed)])


def panels_of(label: str, probed: LoadedProbe, summary: TokenComponents) -> tuple[Panel, Panel]:
    """Return a panel of the first two components, and a panel of each component plotted against the
    value."""
    shares = [f"component {k + 1} ({100 * part:.3g}%)" for k, part in enumerate(summary.explained)]
    values = column(probed, "value")
    coordinates = [column(probed, f"pc{k + 1}") for k in range(len(shares))]
    parts: list[Mark] = []
    for k, rows in enumerate(np.array_split(np.arange(len(values)), _PARTS)):
        if len(rows):
            bounds = f"{values[rows[0]]:g} to {values[rows[-1]]:g}"
            x, y = coordinates[0][rows], coordinates[1][rows]
            parts.append(Points(label=bounds, x=x, y=y, colour=k))
    over = [
        Points(label=f"component {k + 1}", x=values, y=coordinate, colour=_PARTS + k)
        for k, coordinate in enumerate(coordinates)
    ]
    return (
        Panel(title=label, x=Axis(label=shares[0]), y=Axis(label=shares[1]), marks=parts),
        Panel(
            title=label,
            x=Axis(label="value of the token"),
            y=Axis(label="coordinate on the component"),
            marks=over,
        ),
    )
