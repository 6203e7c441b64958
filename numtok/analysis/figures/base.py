"""The interface of a figure: takes artifacts, returns a picture in plain columns.

A kind reads artifacts and returns a picture (``analysis/picture.py``), which
``analysis/drawing.py`` draws with Vega-Lite. Only kinds that run a model import PyTorch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from numtok.analysis.picture import Picture
from numtok.registry import Registry
from numtok.reports import REPORT
from numtok.store.artifact import Artifact, Resolve


class FigureKind(ABC):
    """A kind of figure. Subclasses are final frozen dataclasses; their fields are options of
    ``numtok figure``, with a help each.
    """

    source: ClassVar[str]
    kinds: ClassVar[frozenset[str]] = frozenset({REPORT})  # of the artifacts to draw

    @abstractmethod
    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        """Return the picture of at least one artifact, each of one of ``kinds``; ``resolve`` looks
        up their sources.

        Raises UsageError if the artifacts cannot be drawn together.
        """


FIGURES = Registry[FigureKind]("numtok.analysis.figures", "figure", FigureKind)
