"""Eval: a model and a split of data -> a report.

What is predicted, numbers of texts (``evaluation.numbers``) or of tables (``evaluation.tables``),
labels (``evaluation.labels``) or whole answers (``evaluation.answers``), is scored by every metric
with its bootstrap interval, over all, by target and by group, and set beside the baselines. The
predictions are kept, so that ``compare`` can pair them: reports of all of these have one form.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from numtok.data.tables.rows import read_table_of
from numtok.declaration import command_line
from numtok.encoding.splits import check_codec, read_split, splits
from numtok.evaluation.answers import AnswerEvaluation, answer_metrics
from numtok.evaluation.evaluated_split import EvaluatedSplit
from numtok.evaluation.labels import LabelEvaluation, label_metrics
from numtok.evaluation.numbers import NumberEvaluation, number_metrics
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.prediction_mode import measures_of, options_of
from numtok.evaluation.report_files import (
    check_measures,
    publish,
    repeated_ids,
    write_predictions,
)
from numtok.evaluation.scoring import Progress
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.tables import TableEvaluation, table_metrics
from numtok.metrics.base import METRICS, Metric
from numtok.models.steps import compile_passes
from numtok.records import ENCODED, MODEL, TABLE
from numtok.registry import settings_of
from numtok.reports import REPORT, Measures, Report
from numtok.settings.eval import Config as Config
from numtok.store.artifact import Artifact, Find
from numtok.store.store import Store
from numtok.training.device import check_compiler
from numtok.training.model_files import read_model
from numtok.training.model_json import reads_tables
from numtok.training.regressor_files import read_regressor
from numtok.training.trainer import device_of

REVISION, TABLE_REVISION = 11, 5


@dataclass(frozen=True)
class Result:
    """The report, and whether this call made it."""

    artifact: Artifact
    made: bool


class _Evaluation(Protocol):
    """A model on the rows of a split, in memory."""

    def predictions(
        self, progress: Callable[[int, int], None], note: Callable[[str], None]
    ) -> "pa.Table":
        """The rows of predictions.parquet; DataError where there are none."""

    def report(self, table: "pa.Table", progress: Progress) -> Report:
        """Every figure of the report, from these."""


@dataclass(frozen=True)
class _EvalPlan:
    """What is evaluated on what, with all defaults in place."""

    config: Config
    model: Artifact
    data: Artifact
    of: str  # texts or tables
    settings: dict[str, Any]  # what the version depends on
    open: Callable[[Find], _Evaluation]  # only for a report that is not there


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Evaluate a model, or find the report that is there.

    Raises UsageError (also where model and data do not belong together), DataError, StoreError,
    TrainingFailed (no memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    of_table = reads_tables(model)
    named = config.data or model.made_from(ENCODED, TABLE).where
    data = store.resolve(named, kinds={TABLE if of_table else ENCODED})
    plan = (_of_table if of_table else _of_texts)(config, model, data)
    with store.draft(
        REPORT,
        config.name or f"{model.name}-{config.split}",
        plan.settings,
        [model.as_parent(), data.as_parent()],
        ["numtok", "eval", *command_line(plan.config, plan.of)],
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        evaluation = plan.open(store.find)
        started = time.monotonic()
        table = evaluation.predictions(partial(progress, "predicting"), store.note)
        seconds = time.monotonic() - started
        write_predictions(draft, table)
        report = evaluation.report(table, progress)
        told = msgspec.structs.replace(report, notes=[*report.notes, *repeated_ids(table)])
        return Result(publish(draft, model, told, seconds), made=True)


def _of_texts(config: Config, model: Artifact, data: Artifact) -> _EvalPlan:
    device = device_of(config.device)
    check_codec(model, data)
    if config.split not in splits(data):
        read_split(data, config.split)  # says which splits there are
    measures = measures_of(config, model)
    more = [METRICS.build(spec) for spec in config.metrics]
    check_measures(more, measures, model.ref)
    options = options_of(config, model) if measures == "numbers" else None
    fill, point = config.fill if options is None else options.fill, config.point or "mode"
    settings = {
        "stage": "eval",
        "revision": REVISION,
        "split": config.split,
        "fill": fill,
        "decode": config.decode,
        "point": point,
        "draws": config.draws,
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in (*_USUAL[measures](), *more)],
        "device": device.type,
    }
    if config.compile:  # another rounding: a near tie may go the other way
        check_compiler()
        settings["compile"] = True
    again = replace(
        config,
        model=model.ref,
        data=data.ref,
        fill=None if fill == AUTOREGRESSIVE else fill,
        point=point if measures == "numbers" else None,
        device=device.type,
    )

    def opened(find: Find) -> _Evaluation:
        loaded = read_model(model, device)
        if config.compile:
            compile_passes(loaded.model)
        evaluated = EvaluatedSplit.of(loaded, data, config.split, config.rows)
        if options is not None:
            return NumberEvaluation.of(evaluated, find, options, more)
        if measures == "labels":
            return LabelEvaluation.of(evaluated, find, config.batch, more)
        return AnswerEvaluation.of(evaluated, config.decode == "constrained", config.batch, more)

    return _EvalPlan(again, model, data, "texts", settings, opened)


_USUAL: dict[Measures, Callable[[], list[Metric]]] = {
    "numbers": number_metrics,
    "labels": label_metrics,
    "answers": answer_metrics,
}


def _of_table(config: Config, model: Artifact, data: Artifact) -> _EvalPlan:
    device, options = device_of(config.device), TableOptions.of(config)
    more = [METRICS.build(spec) for spec in config.metrics]
    settings = {
        "stage": "eval-table",
        "revision": TABLE_REVISION,
        "split": config.split,
        "options": asdict(options),
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in (*table_metrics(), *more)],
        "device": device.type,
    }
    again = replace(config, model=model.ref, data=data.ref, point=options.point, device=device.type)

    def opened(find: Find) -> _Evaluation:
        regressor, table = read_regressor(model, device), read_table_of(data)
        return TableEvaluation(regressor, data, table, config.split, options, more, config.rows)

    return _EvalPlan(again, model, data, "tables", settings, opened)
