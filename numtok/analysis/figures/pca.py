"""pca: whether the embeddings of number tokens lie in the order of their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, Mark, Panel, Picture, Points
from numtok.analysis.probing.probe_records import PROBE, LoadedProbe, TokenComponents
from numtok.store.artifact import Artifact, Resolve

_PARTS = 4  # of the tokens, by value


@dataclass(frozen=True)
class Pca(FigureKind):
    """Two panels for each probe: the first two components, the tokens in four parts by value; and
    each component over the value.

    Raises UsageError for probes of another form.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({PROBE})
    source: ClassVar[str] = "xVal, Section B.5"

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        probes = read_probes("pca", TokenComponents, artifacts)
        return Picture([panel for one in probes for panel in panels_of(*one)])


def panels_of(label: str, probed: LoadedProbe, found: TokenComponents) -> tuple[Panel, Panel]:
    """The components beside each other, and over the value."""
    shares = [f"component {k + 1} ({100 * one:.3g}%)" for k, one in enumerate(found.explained)]
    values = column(probed, "value")
    places = [column(probed, f"pc{k + 1}") for k in range(len(shares))]
    parts: list[Mark] = []
    for k, rows in enumerate(np.array_split(np.arange(len(values)), _PARTS)):
        if len(rows):
            told = f"{values[rows[0]]:g} to {values[rows[-1]]:g}"
            parts.append(Points(label=told, x=places[0][rows], y=places[1][rows], colour=k))
    over = [
        Points(label=f"component {k + 1}", x=values, y=place, colour=_PARTS + k)
        for k, place in enumerate(places)
    ]
    return (
        Panel(title=label, x=Axis(label=shares[0]), y=Axis(label=shares[1]), marks=parts),
        Panel(
            title=label,
            x=Axis(label="value of the token"),
            y=Axis(label="place on the component"),
            marks=over,
        ),
    )
