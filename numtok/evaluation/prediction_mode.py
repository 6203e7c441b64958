"""How a model is asked: for numbers, labels or whole answers, and in which mode."""

from collections.abc import Sequence
from typing import Protocol

from numtok.errors import UsageError
from numtok.evaluation.answers import ANSWERS
from numtok.evaluation.predict import AUTOREGRESSIVE, LEFT_TO_RIGHT, PARALLEL, POINTS, Options
from numtok.reports import Measures
from numtok.store.artifact import Artifact
from numtok.training.model_files import is_causal, says_labels

_USUAL = {"fill": None, "decode": "constrained", "point": "mode", "draws": 0}


class PredictionMode(Protocol):
    """What a stage was asked for.

    ``fill`` is for masked models ``parallel`` (None means that) or ``left-to-right``; ``answers``,
    for autoregressive ones, has them write each row's answer as text. ``decode`` is
    ``constrained`` by the scheme's grammar or ``free``. ``point``, ``draws`` and ``batch`` as in
    ``predict.Options``.
    """

    @property
    def fill(self) -> str | None: ...
    @property
    def decode(self) -> str: ...
    @property
    def point(self) -> str: ...
    @property
    def draws(self) -> int: ...
    @property
    def batch(self) -> int: ...


def check_mode(mode: PredictionMode) -> None:
    """Raise UsageError for what no model can be asked in."""
    for option, allowed in (
        ("fill", (None, PARALLEL, LEFT_TO_RIGHT, ANSWERS)),
        ("decode", ("constrained", "free")),
        ("point", POINTS),
    ):
        if getattr(mode, option) not in allowed:
            raise UsageError(
                f"--{option} {getattr(mode, option)!r} is not possible; allowed are "
                f"{', '.join(filter(None, allowed))}"
            )
    for option, least in (("draws", 0), ("batch", 1)):
        value = getattr(mode, option)
        if value < least:
            raise UsageError(f"--{option} {value} is not possible; at least {least}")


def measures_of(mode: PredictionMode, model: Artifact) -> Measures:
    """What is predicted; UsageError for options that are for something else."""
    if says_labels(model):
        _check_unused(mode, ("fill", "decode", "point", "draws"), f"{model.ref} predicts labels")
        return "labels"
    if mode.fill != ANSWERS:
        return "numbers"
    if not is_causal(model):
        raise UsageError(
            f"--fill {ANSWERS} is for autoregressive models; {model.ref} is masked, give "
            f"{PARALLEL} or {LEFT_TO_RIGHT}"
        )
    _check_unused(mode, ("point", "draws"), f"--fill {ANSWERS} writes texts")
    return "answers"


def options_of(mode: PredictionMode, model: Artifact) -> Options:
    """How numbers are read off; UsageError for a ``fill`` that the model cannot do."""
    fill = mode.fill or PARALLEL
    if is_causal(model):
        if mode.fill is not None:
            raise UsageError(
                f"--fill {mode.fill} is for masked models; {model.ref} is "
                f"autoregressive, leave it away or give {ANSWERS}"
            )
        fill = AUTOREGRESSIVE
    return Options(fill, mode.decode == "constrained", mode.point, mode.draws, mode.batch)


def _check_unused(mode: PredictionMode, options: Sequence[str], told: str) -> None:
    """UsageError for what says how numbers are read, where none are."""
    for option in options:
        value = getattr(mode, option)
        if value != _USUAL[option]:
            raise UsageError(f"--{option} {value} is for numbers; {told}, leave it away")
