"""How a model of texts is asked: for numbers, labels or whole answers, and in which mode."""

from collections.abc import Iterator

from numtok.errors import UsageError, meaningless
from numtok.evaluation.answers import ANSWERS, AnswerOptions
from numtok.evaluation.labels import LabelOptions
from numtok.evaluation.predict import AUTOREGRESSIVE, LEFT_TO_RIGHT, PARALLEL, POINTS, Options
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.store.artifact import Artifact
from numtok.training.model_files import is_causal, usual_point
from numtok.training.model_json import TextModelFile

Mode = Options | AnswerOptions | LabelOptions


def prediction_mode(
    config: EvalConfig | PredictConfig, model: Artifact, file: TextModelFile
) -> Mode:
    """Return what is predicted, and how. ``file`` describes the model; if ``point`` is None, its
    head has the default.

    Raises UsageError for settings that mean nothing for it, or that the model cannot do.
    """
    point = config.point or usual_point(model, file)
    if point not in POINTS:
        raise UsageError(
            f"--point {point!r} is for tables; of texts allowed are {', '.join(POINTS)}"
        )
    if file.settings.classes:
        for option in _given(config):
            raise meaningless(option, f"{model.ref}, which predicts labels")
        return LabelOptions(config.batch)
    causal, constrained = is_causal(model, file), config.decode == "constrained"
    if config.fill == ANSWERS:
        if not causal:
            raise UsageError(
                f"--fill {ANSWERS} is for autoregressive models; {model.ref} is masked, give "
                f"{PARALLEL} or {LEFT_TO_RIGHT}"
            )
        for option in _given(config):
            if option not in ("fill", "decode"):
                raise meaningless(option, f"--fill {ANSWERS}, which writes texts")
        return AnswerOptions(constrained, config.batch)
    if causal and config.fill is not None:
        raise UsageError(
            f"--fill {config.fill} is for masked models; {model.ref} is "
            f"autoregressive, leave it away or give {ANSWERS}"
        )
    fill = AUTOREGRESSIVE if causal else config.fill or PARALLEL
    return Options(
        fill=fill, constrained=constrained, point=point, draws=config.draws, batch=config.batch
    )


def _given(config: EvalConfig | PredictConfig) -> Iterator[str]:
    """The settings of how numbers are read that are not as they are where nobody sets them."""
    there = {
        "fill": config.fill is not None,
        "decode": config.decode != "constrained",
        "point": config.point is not None,
        "num-samples": config.draws != 0,
        "slots": isinstance(config, EvalConfig) and config.slots != "auto",
    }
    yield from (option for option, given in there.items() if given)
