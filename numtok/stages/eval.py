"""Eval: a model and a split of data -> a report.

What is predicted, numbers of texts (``evaluation.numbers``) or of tables (``evaluation.tables``),
labels (``evaluation.labels``) or whole answers (``evaluation.answers``), is scored by every metric
with its bootstrap interval, over all, by target and by group, and set beside the baselines. The
predictions are kept, so that ``compare`` can pair them: reports of all of these have one form.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch

from numtok.data.tables.rows import read_table_of
from numtok.declaration import CheckApplies, command_line, no_options
from numtok.encoding.splits import check_codec, read_split, splits
from numtok.evaluation.answers import AnswerEvaluation
from numtok.evaluation.devices import Devices, devices
from numtok.evaluation.evaluated_split import EvaluatedSplit
from numtok.evaluation.evaluation import Evaluator, Subject, report_of
from numtok.evaluation.labels import LabelEvaluation
from numtok.evaluation.numbers import NumberEvaluation
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.prediction_mode import prediction_mode
from numtok.evaluation.report_files import check_measures, publish, write_predictions
from numtok.evaluation.scoring import Progress
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.tables import TableEvaluation
from numtok.metrics.base import METRICS, Metric
from numtok.registry import settings_of
from numtok.reports import REPORT, Measures
from numtok.settings.eval import Config as Config
from numtok.store.artifact import ENCODED, MODEL, TABLE, Artifact, Find
from numtok.store.store import Store
from numtok.training.device import check_compiler, device_of
from numtok.training.model_files import read_model
from numtok.training.model_json import TableModelFile, TextModelFile, read_model_file
from numtok.training.regressor_files import read_regressor

REVISION, TABLE_REVISION = 13, 6


@dataclass(frozen=True)
class Result:
    """The report, and whether this call made it."""

    artifact: Artifact
    made: bool


@dataclass(frozen=True)
class _EvalPlan:
    """How a model is evaluated, with all defaults in place."""

    config: Config
    settings: dict[str, Any]  # what the version depends on
    more: Sequence[Metric]  # metrics that were asked for
    device: torch.device
    open: Callable[[Find, Devices], Evaluator]  # only for a report that is not there


def run(
    config: Config,
    store: Store,
    progress: Progress,
    check: CheckApplies = no_options,
) -> Result:
    """Evaluate a model, or find the report that is there. ``check`` may refuse options that are
    not for a model of texts, or of tables.

    Raises UsageError (also where model and data do not belong together), DataError, StoreError,
    TrainingFailed (no memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    of, kind = ("tables", TABLE) if isinstance(file, TableModelFile) else ("texts", ENCODED)
    check(of, f"a model of {of}")
    named = config.data or model.made_from(ENCODED, TABLE).where
    data = store.resolve(named, kinds={kind})
    if isinstance(file, TableModelFile):
        plan = _of_table(config, model, file, data)
    else:
        plan = _of_texts(config, model, file, data)
    name = config.name or f"{model.name}-{config.split}"
    parents = [model.as_parent(), data.as_parent()]
    command = ["numtok", "eval", *command_line(plan.config, of)]
    with store.draft(REPORT, name, plan.settings, parents, command, config) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        with devices(config.devices, plan.device) as these:
            subject, evaluator = Subject(model, data, config.split), plan.open(store.find, these)
            started = time.monotonic()
            table = evaluator.predictions(partial(progress, "predicting"), store.note)
            timing = {"eval_seconds": time.monotonic() - started, "devices": these.count}
        write_predictions(draft, table)
        report = report_of(subject, evaluator, table, plan.more, progress)
        return Result(publish(draft, model, report, timing), made=True)


def _of_texts(config: Config, model: Artifact, file: TextModelFile, data: Artifact) -> _EvalPlan:
    device = device_of(config.device)
    check_codec(model, data)
    if config.split not in splits(data):
        read_split(data, config.split)  # says which splits there are
    measures, options = prediction_mode(config, model, file)
    more = list(map(METRICS.build, config.metrics))
    check_measures(more, measures, model.ref)
    fill = config.fill if options is None else options.fill
    point = config.point if options is None else options.point
    settings = {
        "stage": "eval",
        "revision": REVISION,
        "split": config.split,
        "fill": fill,
        "decode": config.decode,
        "point": point,
        "draws": config.draws,
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in (*_TEXTS[measures].metrics.usual, *more)],
        "device": device.type,
    }
    if config.on_error != "fail":
        settings["on_error"] = config.on_error
    if config.slots != "auto":
        settings["slots"] = config.slots
    if config.compile:  # another rounding: a near tie may go the other way
        check_compiler()
        settings["compile"] = True
    again = replace(
        config,
        model=model.ref,
        data=data.ref,
        fill=None if fill == AUTOREGRESSIVE else fill,
        point=point,
        device=device.type,
    )

    def opened(find: Find, devices: Devices) -> Evaluator:
        loaded = read_model(model, device, file, config.compile)
        skip = config.on_error == "skip"
        evaluated = EvaluatedSplit.of(loaded, data, config.split, config.rows, devices, skip)
        if options is not None:
            return NumberEvaluation.of(evaluated, find, options, config.slots)
        if measures == "labels":
            return LabelEvaluation.of(evaluated, find, config.batch)
        return AnswerEvaluation.of(evaluated, config.decode == "constrained", config.batch)

    return _EvalPlan(again, settings, more, device, opened)


_TEXTS: dict[Measures, type[NumberEvaluation | LabelEvaluation | AnswerEvaluation]] = {
    "numbers": NumberEvaluation,
    "labels": LabelEvaluation,
    "answers": AnswerEvaluation,
}


def _of_table(config: Config, model: Artifact, file: TableModelFile, data: Artifact) -> _EvalPlan:
    device, options = device_of(config.device), TableOptions.of(config)
    more = list(map(METRICS.build, config.metrics))
    settings = {
        "stage": "eval-table",
        "revision": TABLE_REVISION,
        "split": config.split,
        "options": asdict(options),
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in (*TableEvaluation.metrics.usual, *more)],
        "device": device.type,
    }
    again = replace(config, model=model.ref, data=data.ref, point=options.point, device=device.type)

    def opened(find: Find, devices: Devices) -> Evaluator:
        regressor, table = read_regressor(model, device, file), read_table_of(data)
        return TableEvaluation(regressor, data, table, config.split, options, config.rows, devices)

    return _EvalPlan(again, settings, more, device, opened)
