"""field-skill: mean error reduction per field, relative to predicting the field's train median."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.metrics._weighted import dot
from numtok.metrics.base import Metric, Predictions, Statistic

_FAR = 2.0**900  # cap on errors relative to the largest error of the median; their sums stay finite


@dataclass(frozen=True)
class FieldSkill(Metric):
    """Mean over fields of 1 - MAE / (MAE of predicting the field's train median), where the value
    of each field is at least -1 (lower values are clipped). Always predicting the median of each
    field scores 0. All fields count equally, regardless of their units and of how many numbers they
    have. Numbers without a field are skipped, and so are fields whose numbers all equal the median.

    >>> FieldSkill().plain(Predictions.of([1, 3], [1, 4], field=[0, 1], field_median=[2, 1]))
    0.75
    """

    revision = 1
    source = "numtok: the skill score of Murphy (1988), for absolute errors by field"
    better = "higher"
    bounds = (-1.0, 1.0)
    undefined = "no field has a number that is not its median"
    needs = ("field_median", "field")

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.field is not None and answers.field_median is not None
        codes = np.unique(answers.field, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        of_fields = [
            _skill(answers, rows)
            for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        ]

        def mean(weights: Floats) -> Floats:
            skills = np.stack([skill(weights) for skill in of_fields])
            defined = ~np.isnan(skills)
            means: Floats = np.where(defined, skills, 0.0).sum(axis=0) / defined.sum(axis=0)
            return means

        return mean


def _skill(answers: Predictions, rows: Ints) -> Statistic:
    """Return the skill on the numbers of one field, given by their indices; NaN if none of them
    counts or all equal the median."""
    assert answers.field_median is not None
    truth = answers.truth[rows]
    median_error = np.abs(answers.field_median[rows] - truth)
    largest = median_error.max()
    if largest == 0:
        return lambda weights: np.full(len(weights), np.nan)
    own = np.minimum(np.abs(answers.prediction[rows] - truth) / largest, _FAR)
    median_error = median_error / largest

    def skill(weights: Floats) -> Floats:
        counted = np.take(weights, rows, axis=1)
        error = dot(counted, median_error)
        skills: Floats = np.maximum(-1.0, 1 - dot(counted, own) / error)
        return np.where(error > 0, skills, np.nan)

    return skill
