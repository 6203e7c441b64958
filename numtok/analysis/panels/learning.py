"""What models logged while they learnt, over what they had read and over the time it took.

A log has steps and tokens, of tables epochs, and no clock, since clocks are no content: the seconds
at a step are its share of the tokens or the epochs times the seconds of the whole training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from numtok.analysis.figures.base import Axis, LineMark, Mark, Panel, axis_of
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
    seed: int
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
        tokens = np.array([look.tokens for look in own], np.float64)
        steps = np.array([look.step for look in own], np.float64)
        loss = [look.figures["loss"] for look in own]
        took = evaluation.timing.train_seconds
        share = tokens / max(costs.tokens, 1)
        found.append(
            LearningCurve(
                label=label,
                split=split,
                seed=evaluation.report.seed,
                samples=steps / max(costs.steps, 1) * costs.samples,
                tokens=tokens,
                seconds=None if took is None else share * took,
                loss=np.array([np.nan if one is None else one for one in loss], np.float64),
            )
        )
    return found


def _of_table(
    label: str, evaluation: Evaluation, epochs: Sequence[EpochLosses]
) -> list[LearningCurve]:
    costs, took = evaluation.report.costs, evaluation.timing.train_seconds
    found = []
    for fold in dict.fromkeys(one.fold for one in epochs):
        own = [one for one in epochs if one.fold == fold]
        share = np.array([one.epoch for one in own], np.float64) / len(epochs)
        for split, loss in (
            (TRAIN, [one.train for one in own]),
            ("validation", [one.validation for one in own]),
        ):
            column = np.array([np.nan if one is None else one for one in loss], np.float64)
            if not np.isnan(column).all():
                found.append(
                    LearningCurve(
                        label=label,
                        split=split,
                        seed=evaluation.report.seed,
                        samples=share * costs.samples,
                        tokens=share * costs.tokens,
                        seconds=None if took is None else share * took,
                        loss=column,
                    )
                )
    return found


def learning_panel(
    curves: Sequence[LearningCurve], colours: Mapping[str, int], over: Over, title: str = ""
) -> Panel | None:
    """The loss over what was spent: a line for each training, of the validation split where it was
    looked at, else of the train split. None where there is nothing to draw."""
    seen = [one for one in curves if one.split != TRAIN] or list(curves)
    marks: list[Mark] = []
    for one in seen:
        x = getattr(one, over)
        known = np.isfinite(one.loss)
        if x is not None and x.any() and known.sum() > 1:
            pick = (f"label:{one.label}",) * int(known.sum())
            marks.append(
                LineMark(
                    label=one.label,
                    x=x[known],
                    y=one.loss[known],
                    colour=colours[one.label],
                    picks=pick,
                )
            )
    if not marks:
        return None
    lines = [mark for mark in marks if isinstance(mark, LineMark)]
    every = np.concatenate([mark.y for mark in lines])
    wide = every.min() > 0 and every.max() > _MANY * every.min()
    splits = "validation" if seen[0].split != TRAIN else TRAIN
    words = {"seconds": "seconds of training", "samples": "rows read", "tokens": "tokens read"}
    across = np.concatenate([mark.x for mark in lines])
    x_axis = Axis(label=words[over], low=0.0, high=float(across.max()) or 1.0)
    y_axis = axis_of(f"loss on the {splits} split", "log" if wide else "linear", every, _ROOM)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
