"""figure: draws reports, probes or models, and writes the figure to a file."""

import re
from collections.abc import Sequence

from numtok import files
from numtok.analysis.drawing import check_drawing, image
from numtok.analysis.figures.base import FIGURES, FigureKind
from numtok.analysis.picture import Picture
from numtok.errors import UsageError
from numtok.registry import spec_of
from numtok.settings.figure import Config as Config
from numtok.store.store import Store

_LEAST, _MOST = 200, 10_000  # pixels of a side


def run(config: Config, store: Store) -> None:
    """Draw a figure and write it to a file, replacing an existing one.

    The same artifacts and options give the same PNG or SVG, byte for byte, for a fixed version of
    vl-convert. The objects in a PDF may be ordered differently.

    Raises UsageError (including when vl-convert is missing), DataError and StoreError.
    """
    check_drawing()
    files.check_output("--out", config.out)
    size = None if config.size is None else _pixels(config.size)
    figure = FIGURES.build(config.kind, config.options)
    picture = picture_of(figure, config.refs, store)
    made_by = " ".join(["numtok figure", spec_of(figure), *config.refs])
    drawn = image(picture, config.out.suffix.removeprefix("."), size, made_by)
    files.write_atomic(config.out, drawn)


def _pixels(size: str) -> tuple[int, int]:
    """Parse ``"800x600"`` to ``(800, 600)``. Raises UsageError if a side is out of range."""
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size)
    width, height = (0, 0) if match is None else map(int, match.groups())
    if not all(_LEAST <= side <= _MOST for side in (width, height)):
        raise UsageError(
            f"--size must be WIDTHxHEIGHT in pixels, {_LEAST} to {_MOST} each, such as 800x600 "
            f"(got {size!r})"
        )
    return width, height


def picture_of(figure: FigureKind, refs: Sequence[str], store: Store) -> Picture:
    """Return the picture that a figure draws from the artifacts with the given REFs.

    Raises UsageError if the figure cannot draw artifacts of these kinds, or cannot draw them
    together.
    """
    return figure.picture([store.resolve(ref, figure.kinds) for ref in refs], store.resolve)
