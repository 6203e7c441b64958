"""Reports, probes or models to a picture of them, a file."""

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
    """Draw a figure and write its file, in place of one that is there.

    The same artifacts and options give the same PNG or SVG, byte for byte, with one version of
    vl-convert. A PDF may order its objects differently.

    Raises UsageError (also if vl-convert is missing), DataError, StoreError.
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
    """``"800x600" -> (800, 600)``"""
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size)
    width, height = (0, 0) if found is None else map(int, found.groups())
    if not all(_LEAST <= side <= _MOST for side in (width, height)):
        raise UsageError(
            f"--size {size!r} is not possible; it is width x height in pixels, {_LEAST} to "
            f"{_MOST} each, such as 800x600"
        )
    return width, height


def picture_of(figure: FigureKind, refs: Sequence[str], store: Store) -> Picture:
    """What a figure shows of the artifacts that some REFs stand for.

    Raises UsageError where they are not of the kinds that it draws, or do not go together.
    """
    return figure.picture([store.resolve(ref, figure.kinds) for ref in refs], store.resolve)
