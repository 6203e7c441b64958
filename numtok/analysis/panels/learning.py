"""Training curves: logged losses plotted against rows, tokens or time.

A log contains steps and tokens (for tables, epochs) but no times, so artifacts are reproducible.
The time of a step is estimated as the total training time, multiplied by the fraction of all tokens
or epochs up to that step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from numtok.analysis.picture import Axis, LineMark, Panel, axis_of
from numtok.arrays import Floats
from numtok.data.reading.split_rule import TRAIN
from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation
from numtok.store.artifact import MODEL, Resolve
from numtok.training.log import EpochLosses, LoggedMetrics, is_log_of_texts, read_epochs, read_log

Over = Literal["seconds", "samples", "tokens"]
OVER = get_args(Over)
_ROOM = 0.04
_MANY = 30  # ratio of largest to smallest loss above which the axis is logarithmic


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Losses float64[k] that one training run logged for one split, and the cost up to each loss.

    ``samples`` and ``tokens`` are the numbers of rows and tokens read. ``seconds`` is None if the
    report has no timings.
    """

    label: str
    split: str
    samples: Floats
    tokens: Floats
    seconds: Floats | None
    loss: Floats  # NaN where it is not finite


def learning_curves(
    labelled: Sequence[tuple[str, Sequence[Evaluation]]], resolve: Resolve
) -> list[LearningCurve]:
    """Return the learning curves of the evaluated models, one per model and split.

    Table models have a curve per fold and split. Models that are no longer in the store are
    skipped. ``labelled`` contains pairs of a label and the reports with that label.
    """
    curves = []
    for label, group in labelled:
        for evaluation in group:
            try:
                model = resolve(evaluation.report.model, {MODEL})
            except UsageError:
                continue
            if is_log_of_texts(model.path):
                curves += _of_texts(label, evaluation, read_log(model.path))
            else:
                curves += _of_table(label, evaluation, read_epochs(model.path))
    return curves


def _of_texts(
    label: str, evaluation: Evaluation, entries: Sequence[LoggedMetrics]
) -> list[LearningCurve]:
    costs = evaluation.report.costs
    curves = []
    for split in dict.fromkeys(entry.split for entry in entries):
        own = [entry for entry in entries if entry.split == split]
        rows = np.array([entry.step for entry in own], np.float64) / max(costs.steps, 1)
        tokens = np.array([entry.tokens for entry in own], np.float64) / max(costs.tokens, 1)
        loss = [entry.figures["loss"] for entry in own]
        curves.append(_curve(label, evaluation, split, (rows, tokens), loss))
    return curves


def _of_table(
    label: str, evaluation: Evaluation, epochs: Sequence[EpochLosses]
) -> list[LearningCurve]:
    curves = []
    for fold in dict.fromkeys(epoch.fold for epoch in epochs):
        own = [epoch for epoch in epochs if epoch.fold == fold]
        share = np.array([epoch.epoch for epoch in own], np.float64) / len(epochs)
        for split in (TRAIN, "validation"):
            loss = [getattr(epoch, split) for epoch in own]
            if any(value is not None for value in loss):
                curves.append(_curve(label, evaluation, split, (share, share), loss))
    return curves


def _curve(
    label: str,
    evaluation: Evaluation,
    split: str,
    read: tuple[Floats, Floats],
    loss: Sequence[float | None],
) -> LearningCurve:
    """Return a curve, given the fractions of all rows and of all tokens that had been read."""
    costs, took = evaluation.report.costs, evaluation.timing.train_seconds
    rows, tokens = read
    return LearningCurve(
        label=label,
        split=split,
        samples=rows * costs.samples,
        tokens=tokens * costs.tokens,
        seconds=None if took is None else tokens * took,
        loss=np.array(loss, np.float64),  # None becomes NaN
    )


def learning_panel(
    curves: Sequence[LearningCurve], colours: Mapping[str, int], over: Over, title: str = ""
) -> Panel | None:
    """Return a panel of the loss plotted against the cost ``over``, with one line per curve.

    Only validation curves are drawn if there are any, and train curves otherwise. The result is
    None if no curve can be drawn.
    """
    shown = [curve for curve in curves if curve.split != TRAIN] or list(curves)
    marks: list[LineMark] = []
    for curve in shown:
        x = getattr(curve, over)
        finite = np.isfinite(curve.loss)
        if x is not None and x.any() and finite.sum() > 1:
            pick = (f"label:{curve.label}",) * int(finite.sum())
            colour, x, y = colours[curve.label], x[finite], curve.loss[finite]
            marks.append(LineMark(label=curve.label, x=x, y=y, colour=colour, picks=pick))
    if not marks:
        return None
    every = np.concatenate([mark.y for mark in marks])
    wide = every.min() > 0 and every.max() > _MANY * every.min()
    splits = "validation" if shown[0].split != TRAIN else TRAIN
    words = {"seconds": "seconds of training", "samples": "rows read", "tokens": "tokens read"}
    across = np.concatenate([mark.x for mark in marks])
    x_axis = Axis(label=words[over], low=0.0, high=float(across.max()) or 1.0)
    y_axis = axis_of(f"loss on the {splits} split", "log" if wide else "linear", every, _ROOM)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
