"""Contract suite for figure kinds, run by ``numtok check figure NAME``."""

import inspect

from numtok import contracts
from numtok.analysis.figures.base import FIGURES, FigureKind
from numtok.contracts import check_declared, check_settings, checks_of, expect, require


def check_declarations(figure: FigureKind, seed: int) -> None:
    """Check that the figure declares its source and the kinds of artifacts it draws."""
    name = "declarations"
    check_declared(figure, name, source=str, kinds=frozenset)
    words = all(isinstance(kind, str) and kind for kind in figure.kinds)
    require(figure, name, words, f"kinds: got {set(figure.kinds)}, expected kinds of artifacts")
    check_settings(FIGURES, figure, name)


def check_described(figure: FigureKind, seed: int) -> None:
    """Check that the figure and each of its settings have a description."""
    contracts.check_described(figure, "described")


def check_picture(figure: FigureKind, seed: int) -> None:
    """Check that ``picture`` takes artifacts and a function that resolves references."""
    parameters = len(inspect.signature(figure.picture).parameters)
    expect(figure, "picture", "parameters", parameters, 2)


CHECKS = checks_of(__name__)
