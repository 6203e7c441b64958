"""Reports of evaluations: found in the store or made, with the calibration of their intervals."""

import time
from dataclasses import replace
from functools import partial

from numtok.encoding.splits import learnt_data
from numtok.errors import DataError, UsageError
from numtok.evaluation.devices import devices
from numtok.evaluation.evaluation import report_of
from numtok.evaluation.intervals import MOST_ROWS, USED, CalibrationReport, calibration_split
from numtok.evaluation.report_files import publish, write_predictions
from numtok.evaluation.resolved import ResolvedEvaluation
from numtok.evaluation.scoring import Progress
from numtok.reports import REPORT
from numtok.setting_words import command_line
from numtok.store.access import StoreAccess
from numtok.store.artifact import Artifact, Find, MadeArtifact


class Uncalibrated(UsageError):
    """Raised if the intervals of a model cannot be calibrated.

    The message is ``reason`` followed by the remedy.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"intervals cannot be calibrated: {reason}. {remedy}")
        self.reason = reason


def made_report(
    resolved: ResolvedEvaluation, store: StoreAccess, progress: Progress
) -> MadeArtifact:
    """Evaluate a model, or return the existing report.

    Intervals are added if the split is a test split and numbers are predicted. Raises DataError,
    StoreError, and TrainingFailed (out of memory).
    """
    model, data, config = resolved.model, resolved.data, resolved.config
    name = config.name or f"{model.name}-{config.split}"
    parents = [model.as_parent(), data.as_parent()]
    command = ["numtok", "eval", *command_line(config, resolved.kind)]
    with store.draft(
        REPORT, name, resolved.settings, parents=parents, command=command, how=config
    ) as draft:
        if isinstance(draft, Artifact):
            return MadeArtifact(draft, made=False)
        calibration: CalibrationReport | str | None = None
        if resolved.predicts_numbers and config.intervals == "auto" and config.split not in USED:
            try:
                calibration = calibration_report(resolved, store, progress)
            except Uncalibrated as error:
                calibration = error.reason
        with devices(config.devices, resolved.device) as pool:
            evaluator = resolved.open(store.find, pool)
            started = time.monotonic()
            table = evaluator.predictions(partial(progress, "predicting"), store.note)
            timing = {"eval_seconds": time.monotonic() - started, "devices": pool.count}
        report, table = report_of(
            evaluator,
            table,
            model=model,
            data=data,
            split=config.split,
            more=resolved.metrics,
            progress=progress,
            calibration=calibration,
            with_baselines=config.baselines == "auto",
        )
        write_predictions(draft, table)
        return MadeArtifact(publish(draft, model, report, timing), made=True)


def calibration_report(
    resolved: ResolvedEvaluation, store: StoreAccess, progress: Progress
) -> CalibrationReport:
    """Return the report that calibrates the intervals of a model; it is made if it is missing.

    It covers at most :data:`MOST_ROWS` rows of the calibration split of the model's training data,
    predicted with the options of ``resolved``. Raises Uncalibrated if such rows do not exist.
    """
    model = resolved.model
    data = training_data(model, resolved.data, store.find)
    if (split := calibration_split(data)) is None:
        raise Uncalibrated(
            f"{data.ref} has neither a split calibration nor a split validation",
            "Train on data with one: --split validation=0.12,calibration=0.08,test=0.15",
        )
    count = data.manifest.counts.get(f"rows_{split}", MOST_ROWS + 1)
    config = replace(
        resolved.config,
        data=data.ref,
        split=split,
        # An evaluation of the whole split is the same report, so that it is made once.
        rows=None if count <= MOST_ROWS else MOST_ROWS,
        metrics=(),
        against=None,
        column=None,
        name=None,
        restart=False,
        force=False,
    )

    def calibrating(activity: str, done: int, total: int) -> None:
        progress(f"calibrating intervals: {activity}", done, total)

    try:
        calibrated = replace(resolved, config=config, data=data, metrics=())
        artifact = made_report(calibrated, store, calibrating).artifact
    except DataError as error:
        reason = f"split {split!r} of {data.ref} cannot be predicted ({error})"
        raise Uncalibrated(reason, "Correct these rows") from error
    return CalibrationReport.read(artifact, data)


def training_data(model: Artifact, known: Artifact | None, find: Find) -> Artifact:
    """Return the data that a model was trained on: ``known`` itself, or other data that ``find``
    looks up in the store. Raises Uncalibrated if it is not in the store."""
    data = learnt_data(model, known, find)
    if data is None:
        raise Uncalibrated(
            f"the training data of {model.ref} are not in the store",
            f"Make them again; for the commands: numtok lineage {model.ref}",
        )
    return data
