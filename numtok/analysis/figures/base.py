"""The contract of a figure: artifacts in, a picture in plain columns out.

A kind reads artifacts and returns a picture (``analysis/picture.py``), which
``analysis/drawing.py`` draws through Vega-Lite. Only kinds that run a model import PyTorch.
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
