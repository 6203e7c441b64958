"""The contract of a figure: references in, a picture in plain columns out; and how one is made.

A kind reads artifacts and says what is shown (``_picture``); ``_drawing`` draws it. matplotlib is
loaded for that alone, and PyTorch only by kinds that ask a model.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from numtok import files
from numtok.analysis.figures import _drawing
from numtok.analysis.figures._picture import Picture
from numtok.errors import UsageError
from numtok.registry import Registry, spec_of
from numtok.store.store import Store

FORMATS = (".png", ".svg")
_LEAST, _MOST = 200, 10_000  # pixels of a side


class Figure(ABC):
    """A kind of figure. Subclasses are final frozen dataclasses; their fields are options of
    ``numtok figure``, which has a help for each."""

    source: ClassVar[str]

    @abstractmethod
    def picture(self, refs: Sequence[str], store: Store) -> Picture:
        """What is shown of some artifacts, at least one.

        Raises UsageError where they are not of the kind that is needed, or do not go together.
        """


FIGURES: Registry[Figure] = Registry("numtok.analysis.figures", "figure")


@dataclass(frozen=True)
class Config:
    """What ``numtok figure`` was asked for; ``size`` is in pixels, None for one that suits."""

    figure: Figure
    refs: tuple[str, ...]
    out: Path
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.out.suffix not in FORMATS:
            raise UsageError(
                f"--out {str(self.out)!r} is not possible; a figure is a file that ends in "
                f"{' or '.join(FORMATS)}"
            )
        if self.size is not None and not all(_LEAST <= side <= _MOST for side in self.size):
            raise UsageError(
                f"--size {self.size[0]}x{self.size[1]} is not possible; a side has {_LEAST} to "
                f"{_MOST} pixels"
            )


def run(config: Config, store: Store) -> None:
    """Draw a figure and write its file, in place of one that is there.

    The same artifacts and options give the same bytes, for one version of matplotlib.

    Raises UsageError (also where matplotlib is missing), DataError, StoreError.
    """
    _drawing.check_matplotlib()
    picture = config.figure.picture(config.refs, store)
    made_by = " ".join(["numtok figure", spec_of(config.figure), *config.refs])
    image = _drawing.image(picture, config.out.suffix.removeprefix("."), config.size, made_by)
    files.write_atomic(config.out, image)
