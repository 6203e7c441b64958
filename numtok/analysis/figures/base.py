"""Interface for figures: each figure kind reads artifacts and returns a picture as plain columns.

``analysis/drawing.py`` draws the picture (``analysis/picture.py``) with Vega-Lite. Only kinds that
run a model import PyTorch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from numtok.analysis.picture import Picture
from numtok.registry import Registry
from numtok.reports import REPORT
from numtok.store.artifact import Artifact, Resolve


class FigureKind(ABC):
    """Base class for figure kinds.

    Subclasses are final frozen dataclasses. Their fields are options of ``numtok figure``, each
    with a help text.
    """

    source: ClassVar[str]
    kinds: ClassVar[frozenset[str]] = frozenset({REPORT})  # of the artifacts to draw

    @abstractmethod
    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        """Return a picture of one or more artifacts, each of a kind in ``kinds``.

        ``resolve`` looks up an artifact by REF, such as the data of a report. Raises UsageError if
        the artifacts cannot be drawn together.
        """


FIGURES = Registry[FigureKind]("numtok.analysis.figures", "figure", FigureKind)
