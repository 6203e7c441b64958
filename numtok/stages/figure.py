"""Reports, probes or models to a picture of them, a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from numtok import files
from numtok.analysis.figures.base import FigureKind, Picture, check_drawing, image
from numtok.errors import UsageError
from numtok.registry import spec_of
from numtok.store.store import Store

FORMATS = (".png", ".svg")
_LEAST, _MOST = 200, 10_000  # pixels of a side


@dataclass(frozen=True)
class Config:
    """What ``numtok figure`` was asked for; ``size`` is in pixels, None for one that suits."""

    figure: FigureKind
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
    check_drawing()
    picture = picture_of(config.figure, config.refs, store)
    made_by = " ".join(["numtok figure", spec_of(config.figure), *config.refs])
    drawn = image(picture, config.out.suffix.removeprefix("."), config.size, made_by)
    files.write_atomic(config.out, drawn)


def picture_of(figure: FigureKind, refs: Sequence[str], store: Store) -> Picture:
    """What a figure shows of the artifacts that some REFs stand for.

    Raises UsageError where they are not of the kinds that it draws, or do not go together.
    """
    return figure.picture([store.resolve(ref, figure.kinds) for ref in refs], store.resolve)
