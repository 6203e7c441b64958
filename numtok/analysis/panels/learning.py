"""What models logged while they learnt, over what they had read and over the time it took.

A log has steps and tokens, of tables epochs, and no clock, since clocks are no content: the seconds
at a step are its share of the tokens or the epochs times the seconds of the whole training.
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
from numtok.training.log import EpochLosses, Look, is_log_of_texts, read_epochs, read_log

Over = Literal["seconds", "samples", "tokens"]
OVER = get_args(Over)
_ROOM = 0.04
_MANY = 30  # times the least: from there on losses are drawn on a logarithm


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """What one training logged of one split: float64[k] each; ``seconds`` is None where nobody
    looked at a clock."""

    label: str
    split: str
    samples: Floats
    tokens: Floats
    seconds: Floats | None
    loss: Floats  # NaN where it is not finite


def learning_curves(
    labelled: Sequence[tuple[str, Sequence[Evaluation]]], resolve: Resolve
) -> list[LearningCurve]:
    """Those of the models of some reports, each split apart, and of tables each fold; none of
    models that are no longer in the store."""
    found = []
    for label, group in labelled:
        for evaluation in group:
            try:
                model = resolve(evaluation.report.model, {MODEL})
            except UsageError:
                continue
            if is_log_of_texts(model.path):
                found += _of_texts(label, evaluation, read_log(model.path))
            else:
                found += _of_table(label, evaluation, read_epochs(model.path))
    return found


def _of_texts(label: str, evaluation: Evaluation, looks: Sequence[Look]) -> list[LearningCurve]:
    costs = evaluation.report.costs
    found = []
    for split in dict.fromkeys(look.split for look in looks):
        own = [look for look in looks if look.split == split]
        rows = np.array([look.step for look in own], np.float64) / max(costs.steps, 1)
        tokens = np.array([look.tokens for look in own], np.float64) / max(costs.tokens, 1)
        loss = [look.figures["loss"] for look in own]
        found.append(_curve(label, evaluation, split, (rows, tokens), loss))
    return found


def _of_table(
    label: str, evaluation: Evaluation, epochs: Sequence[EpochLosses]
) -> list[LearningCurve]:
    found = []
    for fold in dict.fromkeys(one.fold for one in epochs):
        own = [one for one in epochs if one.fold == fold]
        share = np.array([one.epoch for one in own], np.float64) / len(epochs)
        for split in (TRAIN, "validation"):
            loss = [getattr(one, split) for one in own]
            if any(one is not None for one in loss):
                found.append(_curve(label, evaluation, split, (share, share), loss))
    return found


def _curve(
    label: str,
    evaluation: Evaluation,
    split: str,
    read: tuple[Floats, Floats],
    loss: Sequence[float | None],
) -> LearningCurve:
    """Make a curve over the fractions of all rows and of all tokens that were read."""
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
    """The loss over what was spent: a line for each training, of the validation split where it was
    looked at, else of the train split. None where there is nothing to draw."""
    seen = [one for one in curves if one.split != TRAIN] or list(curves)
    marks: list[LineMark] = []
    for one in seen:
        x = getattr(one, over)
        known = np.isfinite(one.loss)
        if x is not None and x.any() and known.sum() > 1:
            pick = (f"label:{one.label}",) * int(known.sum())
            colour, x, y = colours[one.label], x[known], one.loss[known]
            marks.append(LineMark(label=one.label, x=x, y=y, colour=colour, picks=pick))
    if not marks:
        return None
    every = np.concatenate([mark.y for mark in marks])
    wide = every.min() > 0 and every.max() > _MANY * every.min()
    splits = "validation" if seen[0].split != TRAIN else TRAIN
    words = {"seconds": "seconds of training", "samples": "rows read", "tokens": "tokens read"}
    across = np.concatenate([mark.x for mark in marks])
    x_axis = Axis(label=words[over], low=0.0, high=float(across.max()) or 1.0)
    y_axis = axis_of(f"loss on the {splits} split", "log" if wide else "linear", every, _ROOM)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
