"""Prediction mode of a text model (numbers, labels or whole answers) and its options."""

from collections.abc import Iterator

from numtok.errors import UsageError, meaningless
from numtok.evaluation.answers import ANSWERS, AnswerOptions
from numtok.evaluation.labels import LabelOptions
from numtok.evaluation.predict import AUTOREGRESSIVE, LEFT_TO_RIGHT, PARALLEL, POINTS, Options
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.store.artifact import Artifact
from numtok.training.model_files import default_point_of, is_causal
from numtok.training.model_json import TextModelFile

Mode = Options | AnswerOptions | LabelOptions


def prediction_mode(
    config: EvalConfig | PredictConfig, model: Artifact, file: TextModelFile
) -> Mode:
    """Return the options of the mode in which a text model predicts: numbers, labels or whole
    answers.

    ``file`` describes the model. If the setting ``point`` is None, the default of the model's head
    is used. Raises UsageError for settings that do not apply to the model.
    """
    point = config.point or default_point_of(model, file)
    if point not in POINTS:
        raise UsageError(
            f"--point {point!r} only applies to table models. For text models: {', '.join(POINTS)}"
        )
    if file.settings.classes:
        for option in _changed_options(config):
            raise meaningless(option, f"{model.ref}, which predicts labels")
        return LabelOptions(config.batch)
    causal, constrained = is_causal(model, file), config.decode == "constrained"
    if config.fill == ANSWERS:
        if not causal:
            raise UsageError(
                f"--fill {ANSWERS} only applies to autoregressive models; {model.ref} is masked. "
                f"Use {PARALLEL} or {LEFT_TO_RIGHT}"
            )
        for option in _changed_options(config):
            if option not in ("fill", "decode"):
                raise meaningless(option, f"--fill {ANSWERS}, which writes texts")
        return AnswerOptions(constrained, config.batch)
    if causal and config.fill is not None:
        raise UsageError(
            f"--fill {config.fill} only applies to masked models; {model.ref} is autoregressive. "
            f"Remove it, or use {ANSWERS}"
        )
    fill = AUTOREGRESSIVE if causal else config.fill or PARALLEL
    return Options(
        fill=fill, constrained=constrained, point=point, draws=config.draws, batch=config.batch
    )


def _changed_options(config: EvalConfig | PredictConfig) -> Iterator[str]:
    """Yield the options for decoding numbers that differ from their defaults."""
    changed = {
        "fill": config.fill is not None,
        "decode": config.decode != "constrained",
        "point": config.point is not None,
        "num-samples": config.draws != 0,
        "fields": isinstance(config, EvalConfig) and config.fields != "auto",
    }
    yield from (option for option, is_changed in changed.items() if is_changed)
