"""embedding: how the embedding of a number saturates after the first layer norm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, Band, LineMark, Mark, Panel, Picture
from numtok.analysis.probing.probe_records import PROBE, LoadedProbe
from numtok.analysis.probing.probe_records import Embedding as Summary
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class EmbeddingFigure(FigureKind):
    """Projected number embeddings, plotted against the number, with all probes in one panel.

    A line shows the mean over positions, a band shows the range over positions, and a gray line
    shows the fitted formula, if there is one.

    Raises UsageError if a probe is not of the kind ``embedding``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({PROBE})
    source: ClassVar[str] = "xVal, Figure 2"

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        return picture_of(read_probes("embedding", Summary, artifacts))


def picture_of(probes: Sequence[tuple[str, LoadedProbe, Summary]]) -> Picture:
    """Return a picture that shows all labeled probes in one panel."""
    marks: list[Mark] = []
    notes = ["Bands: range over all positions."]
    for index, (label, probed, summary) in enumerate(probes):
        x = column(probed, "x")
        marks.append(
            Band(
                label=label,
                x=x,
                low=column(probed, "low"),
                high=column(probed, "high"),
                colour=index,
            )
        )
        marks.append(LineMark(label=label, x=x, y=column(probed, "mean"), colour=index))
        if summary.formula is not None:
            marks.append(LineMark(label="formula", x=x, y=column(probed, "formula")))
            notes.append(f"Formula: {summary.formula}.")
    x_axis = Axis(label="x, the normalized input")
    y_axis = Axis(label="projection after the first layer norm")
    return Picture([Panel(title="", x=x_axis, y=y_axis, marks=marks)], list(dict.fromkeys(notes)))
