"""The contract of a figure: artifacts in, a picture in plain columns out.

A kind reads artifacts and returns a picture (``_picture``), which ``_drawing`` draws through
Vega-Lite (``_vega``). Only kinds that run a model import PyTorch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from numtok.analysis.figures._drawing import check_drawing as check_drawing
from numtok.analysis.figures._drawing import image as image
from numtok.analysis.figures._picture import Axis as Axis
from numtok.analysis.figures._picture import Band as Band
from numtok.analysis.figures._picture import BarMarks as BarMarks
from numtok.analysis.figures._picture import CellMarks as CellMarks
from numtok.analysis.figures._picture import ColumnMarks as ColumnMarks
from numtok.analysis.figures._picture import Levels as Levels
from numtok.analysis.figures._picture import LineMark as LineMark
from numtok.analysis.figures._picture import Mark as Mark
from numtok.analysis.figures._picture import Panel as Panel
from numtok.analysis.figures._picture import Picture as Picture
from numtok.analysis.figures._picture import Points as Points
from numtok.analysis.figures._picture import Ticks as Ticks
from numtok.analysis.figures._picture import axis_of as axis_of
from numtok.analysis.figures._picture import drawn as drawn
from numtok.analysis.figures._picture import some as some
from numtok.analysis.figures._picture import undrawn as undrawn
from numtok.analysis.figures._vega import COLOURS as COLOURS
from numtok.analysis.figures._vega import SHAPES as SHAPES
from numtok.analysis.figures._vega import VEGA_LITE as VEGA_LITE
from numtok.analysis.figures._vega import chart as chart
from numtok.analysis.figures._vega import shape_of as shape_of
from numtok.analysis.figures._vega import still as still
from numtok.registry import Registry
from numtok.reports import REPORT
from numtok.store.artifact import Artifact, Resolve


class FigureKind(ABC):
    """A kind of figure. Subclasses are final frozen dataclasses; their fields are options of
    ``numtok figure``, which has a help for each."""

    source: ClassVar[str]
    kinds: ClassVar[frozenset[str]] = frozenset({REPORT})  # of artifacts that are drawn

    @abstractmethod
    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        """What is shown of some artifacts, at least one, each of one of ``kinds``; ``resolve``
        finds what they were made from.

        Raises UsageError where they do not go together.
        """


FIGURES = Registry[FigureKind]("numtok.analysis.figures", "figure", FigureKind)
