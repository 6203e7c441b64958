"""confidence: a model's confidence in a text, plotted against a number in the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures._reports import colours_of
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, LineMark, Mark, Panel, Picture
from numtok.analysis.probing.probe_records import PROBE, LoadedProbe
from numtok.analysis.probing.probe_records import Confidence as Summary
from numtok.store.artifact import Artifact, Resolve

_Curve = tuple[str, LoadedProbe, Summary]


@dataclass(frozen=True)
class ConfidenceFigure(FigureKind):
    """A model's confidence in a text, plotted against a number in the text.

    There is one line per probe, and one panel per text and measure. Likelihoods of different models
    are not comparable, so each curve of likelihoods is relative to its maximum.

    Raises UsageError if a probe is not of the kind ``confidence``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({PROBE})
    source: ClassVar[str] = "NumGPT, Figure 1"

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        probes = read_probes("confidence", Summary, artifacts)
        groups: dict[tuple[str, int, str | None], list[_Curve]] = {}
        notes = []
        for label, probed, summary in probes:
            group = groups.setdefault((summary.asked, summary.number, summary.label), [])
            group.append((label, probed, summary))
            if summary.variation is not None:
                notes.append(f"{label}: variation / range {summary.variation:.3g}.")
        colours = colours_of(label for label, *_ in probes)
        return Picture([_panel(group, colours) for group in groups.values()], notes)


def _panel(group: Sequence[_Curve], colours: dict[str, int]) -> Panel:
    marks: list[Mark] = []
    first = group[0][2]
    for label, probed, summary in group:
        y = column(probed, "confidence")
        y = y if summary.label is not None else y - summary.most
        marks.append(LineMark(label=label, x=column(probed, "x"), y=y, colour=colours[label]))
    logarithmic = all(summary.low > 0 for _, _, summary in group)
    x_axis = Axis(
        label=f"number {first.number} of the text", scale="log" if logarithmic else "linear"
    )
    y_axis = Axis(label="log-likelihood relative to its maximum (nats)")
    if first.label is not None:
        y_axis = Axis(label=first.measures, low=0.0, high=1.0)
    return Panel(title=first.asked, x=x_axis, y=y_axis, marks=marks)
