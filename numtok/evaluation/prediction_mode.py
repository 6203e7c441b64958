"""How a model is asked: for numbers, labels or whole answers, and in which mode."""

from collections.abc import Sequence

from numtok.errors import UsageError
from numtok.evaluation.answers import ANSWERS
from numtok.evaluation.predict import AUTOREGRESSIVE, LEFT_TO_RIGHT, PARALLEL, POINTS, Options
from numtok.reports import Measures
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.store.artifact import Artifact
from numtok.training.model_files import is_causal, says_labels

#: What both commands are asked for; ``point`` None is ``mode`` for texts.
PredictionMode = EvalConfig | PredictConfig
_USUAL = {"fill": None, "decode": "constrained", "point": "mode", "draws": 0}


def measures_of(mode: PredictionMode, model: Artifact) -> Measures:
    """What is predicted; UsageError for options that are for something else."""
    if mode.point is not None and mode.point not in POINTS:
        raise UsageError(
            f"--point {mode.point!r} is for tables; of texts allowed are {', '.join(POINTS)}"
        )
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
    return Options(fill, mode.decode == "constrained", mode.point or "mode", mode.draws, mode.batch)


def _check_unused(mode: PredictionMode, options: Sequence[str], told: str) -> None:
    """UsageError for what says how numbers are read, where none are."""
    for option in options:
        value = getattr(mode, option)
        if value not in (None, _USUAL[option]):
            raise UsageError(f"--{option} {value} is for numbers; {told}, leave it away")
