"""pca: whether the embeddings of number tokens lie in the order of their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._picture import Axis, Mark, Panel, Picture, Points
from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.probing.probe_files import LoadedProbe
from numtok.analysis.probing.probe_records import PROBE, TokenComponents
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
            parts.append(Points(told, places[0][rows], places[1][rows], k))
    over = [
        Points(f"component {k + 1}", values, place, _PARTS + k) for k, place in enumerate(places)
    ]
    return (
        Panel(label, Axis(shares[0]), Axis(shares[1]), parts),
        Panel(label, Axis("value of the token"), Axis("place on the component"), over),
    )
