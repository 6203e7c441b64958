"""Resolved options of ``numtok eval`` (model, data, metrics and decoding): validated, with all
defaults filled in."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch

from numtok.data.tables.table import read_table_of
from numtok.encoding.splits import read_split, splits
from numtok.encoding.stored_codec import check_codec
from numtok.evaluation.answers import AnswerEvaluation, AnswerOptions
from numtok.evaluation.devices import Devices
from numtok.evaluation.evaluation import EvaluatedSplit, Evaluator, ReportMetrics
from numtok.evaluation.labels import LabelEvaluation
from numtok.evaluation.numbers import NumberEvaluation
from numtok.evaluation.predict import AUTOREGRESSIVE, Options
from numtok.evaluation.prediction_mode import Mode, prediction_mode
from numtok.evaluation.prediction_table import check_measures
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.tables import TableEvaluation
from numtok.metrics.base import METRICS, Metric
from numtok.registry import settings_of
from numtok.settings.eval import Config
from numtok.store.artifact import Artifact, Find
from numtok.training.device import check_compiler, device_of
from numtok.training.model_files import read_model, read_regressor
from numtok.training.model_json import TableModelFile, TextModelFile

TEXTS_REVISION, TABLES_REVISION = 16, 8


@dataclass(frozen=True, kw_only=True)
class ResolvedEvaluation(ABC):
    """Evaluation with validated options. Its model is not loaded yet.

    config
        Settings with all defaults filled in, as in the recorded command.
    metrics
        Metrics added by ``--metric``.
    """

    kind: ClassVar[str]  #: ``texts`` or ``tables``

    config: Config
    model: Artifact
    data: Artifact
    device: torch.device
    metrics: Sequence[Metric]

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Settings that affect the report. The version of the report is computed from them."""

    @property
    @abstractmethod
    def predicts_numbers(self) -> bool:
        """True if the model predicts numbers, rather than labels or answers."""

    @abstractmethod
    def open(self, find: Find, devices: Devices) -> Evaluator:
        """Load the model and the data, and return the evaluator. This is called only if the report
        does not exist yet."""

    def _metric_settings(self, report_metrics: ReportMetrics) -> list[dict[str, Any]]:
        return [settings_of(metric) for metric in (*report_metrics.defaults, *self.metrics)]

    @property
    def _left_out(self) -> dict[str, str]:
        """Settings of parts that the report leaves out."""
        parts = {"intervals": self.config.intervals, "baselines": self.config.baselines}
        return {name: value for name, value in parts.items() if value != "auto"}


@dataclass(frozen=True, kw_only=True)
class ResolvedTextEvaluation(ResolvedEvaluation):
    """Evaluation of a text model, with validated options."""

    kind: ClassVar[str] = "texts"

    file: TextModelFile
    mode: Mode

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that affect the report. The version of the report is computed from them."""
        config, mode = self.config, self.mode
        metrics = _evaluation_of(mode).metrics
        settings = {
            "stage": "eval",
            "revision": TEXTS_REVISION,
            "split": config.split,
            "fill": mode.fill if isinstance(mode, Options) else config.fill,
            "decode": config.decode,
            "point": config.point,
            "draws": config.draws,
            "rows": config.rows,
            "metrics": self._metric_settings(metrics),
            "device": self.device.type,
        }
        if config.on_error != "fail":
            settings["on_error"] = config.on_error
        if config.fields != "auto":
            settings["fields"] = config.fields
        if config.compile:  # rounding differs, so near ties may be decided differently
            settings["compile"] = True
        return settings | self._left_out

    @property
    def predicts_numbers(self) -> bool:
        """True if the model predicts numbers, rather than labels or answers."""
        return isinstance(self.mode, Options)

    def open(self, find: Find, devices: Devices) -> Evaluator:
        """Load the model and the data, and return the evaluator. This is called only if the report
        does not exist yet."""
        config, mode = self.config, self.mode
        evaluated = EvaluatedSplit.of(
            read_model(self.model, self.device, self.file, config.compile),
            self.data,
            config.split,
            rows=config.rows,
            devices=devices,
            skip_long=config.on_error == "skip",
        )
        if isinstance(mode, Options):
            return NumberEvaluation.of(evaluated, find, mode, config.fields)
        if isinstance(mode, AnswerOptions):
            return AnswerEvaluation.of(evaluated, mode)
        return LabelEvaluation.of(evaluated, find, mode.batch)


@dataclass(frozen=True, kw_only=True)
class ResolvedTableEvaluation(ResolvedEvaluation):
    """Evaluation of a table model, with validated options."""

    kind: ClassVar[str] = "tables"

    file: TableModelFile
    options: TableOptions

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that affect the report. The version of the report is computed from them."""
        return {
            "stage": "eval-table",
            "revision": TABLES_REVISION,
            "split": self.config.split,
            "options": asdict(self.options),
            "rows": self.config.rows,
            "metrics": self._metric_settings(TableEvaluation.metrics),
            "device": self.device.type,
            **self._left_out,
        }

    @property
    def predicts_numbers(self) -> bool:
        """True: table models always predict numbers."""
        return True

    def open(self, find: Find, devices: Devices) -> Evaluator:
        """Load the model and the data, and return the evaluator. This is called only if the report
        does not exist yet."""
        return TableEvaluation(
            loaded=read_regressor(self.model, self.device, self.file),
            source=self.data,
            table=read_table_of(self.data),
            split=self.config.split,
            options=self.options,
            most=self.config.rows,
            devices=devices,
        )


def resolve(
    config: Config, model: Artifact, file: TextModelFile | TableModelFile, data: Artifact
) -> ResolvedEvaluation:
    """Validate the options for evaluating a model, and fill in their defaults.

    ``file`` describes the model. Raises UsageError if an option is invalid, the split is unknown,
    or the data and a text model have different encodings.
    """
    device = device_of(config.device)
    metrics = list(map(METRICS.build, config.metrics))
    if isinstance(file, TableModelFile):
        check_measures(metrics, "numbers", model.ref)
        options = TableOptions.of(config)
        config = replace(
            config, model=model.ref, data=data.ref, point=options.point, device=device.type
        )
        return ResolvedTableEvaluation(
            config=config,
            model=model,
            data=data,
            device=device,
            metrics=metrics,
            file=file,
            options=options,
        )
    check_codec(model, data)
    if config.split not in splits(data):
        read_split(data, config.split)  # raises with the names of the splits
    mode = prediction_mode(config, model, file)
    check_measures(metrics, mode.measures, model.ref)
    if config.compile:
        check_compiler()
    if isinstance(mode, Options):
        fill = None if mode.fill == AUTOREGRESSIVE else mode.fill
        config = replace(config, fill=fill, point=mode.point)
    config = replace(config, model=model.ref, data=data.ref, device=device.type)
    return ResolvedTextEvaluation(
        config=config,
        model=model,
        data=data,
        device=device,
        metrics=metrics,
        file=file,
        mode=mode,
    )


def _evaluation_of(mode: Mode) -> type[NumberEvaluation | LabelEvaluation | AnswerEvaluation]:
    if isinstance(mode, Options):
        return NumberEvaluation
    return AnswerEvaluation if isinstance(mode, AnswerOptions) else LabelEvaluation
