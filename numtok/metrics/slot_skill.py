"""slot-skill: the mean over slots of how much closer than the slot's median predictions are."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.metrics._weighted import dot
from numtok.metrics.base import Metric, Predictions, Statistic

_FAR = 2.0**900  # times as far off as the median can be: no sum of them overflows


@dataclass(frozen=True)
class SlotSkill(Metric):
    """The mean over slots of 1 - MAE / MAE of the slot's median in the train split, at least -1 of
    each: 0 is what one says who knows which number of a row it is, and nothing of the others. Slots
    count alike, whatever their units and how many numbers they have. Numbers of no slot have no
    part in it, nor has a slot whose numbers are all its median.

    >>> SlotSkill().plain(Predictions.of([1, 3], [1, 4], slot=[0, 1], slot_median=[2, 1]))
    0.75
    """

    revision = 1
    source = "numtok: the skill score of Murphy (1988), of absolute errors by slot"
    better = "higher"
    bounds = (-1.0, 1.0)
    undefined = "no slot has a number that is not its median"
    needs = ("slot_median", "slot")

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.slot is not None and answers.slot_median is not None
        codes = np.unique(answers.slot, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        of_slots = [
            _skill(answers, rows)
            for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        ]

        def mean(weights: Floats) -> Floats:
            skills = np.stack([skill(weights) for skill in of_slots])
            known = ~np.isnan(skills)
            means: Floats = np.where(known, skills, 0.0).sum(axis=0) / known.sum(axis=0)
            return means

        return mean


def _skill(answers: Predictions, rows: Ints) -> Statistic:
    """That of the numbers of one slot, by their indices; NaN where none of them counts or all are
    the median."""
    assert answers.slot_median is not None
    truth = answers.truth[rows]
    usual = np.abs(answers.slot_median[rows] - truth)
    largest = usual.max()
    if largest == 0:
        return lambda weights: np.full(len(weights), np.nan)
    own = np.minimum(np.abs(answers.prediction[rows] - truth) / largest, _FAR)
    usual = usual / largest

    def skill(weights: Floats) -> Floats:
        counted = np.take(weights, rows, axis=1)
        error = dot(counted, usual)
        found: Floats = np.maximum(-1.0, 1 - dot(counted, own) / error)
        return np.where(error > 0, found, np.nan)

    return skill
