"""The rows on which experiments are farthest apart."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from numtok.analysis.panels.rows import (
    Excerpt,
    chosen,
    read_excerpts,
    slots_of,
    spreads,
    standard_errors,
)
from numtok.arrays import Floats, Ints
from numtok.evaluation.report_files import Evaluation, ReportPredictions
from numtok.metrics.base import Predictions
from numtok.store.artifact import Resolve


class DifferingRows(NamedTuple):
    """``k`` rows of ``n``, chosen as those of a report, those first of which m experiments say the
    most different numbers.

    rows
        int64[k], which of the predictions they are.
    apart
        float64[n], by which they are sorted (:func:`apart`).
    closest, farthest
        int64[n], which of the m experiments is nearest to the truth, and which is farthest from it.
    slots
        Of each of the n its slot, by name.
    excerpts
        Of each of the k the text around it; None where the data are not at hand.
    """

    rows: Ints
    apart: Floats
    closest: Ints
    farthest: Ints
    slots: list[str]
    excerpts: list[Excerpt] | None


def differing_rows(
    evaluations: Mapping[str, Evaluation],
    predictions: Mapping[str, ReportPredictions],
    most: int,
    resolve: Resolve,
) -> DifferingRows:
    """Choose at most so many rows of the reports of some experiments, by label, all of the same
    numbers; at least one."""
    label, first = next(iter(predictions.items()))
    names = slots_of(first)
    answers = {label: one.answers for label, one in predictions.items()}
    found = apart(answers, names)
    errors = np.stack([standard_errors(one, names) for one in answers.values()])
    rows = chosen(found, most)
    report = evaluations[label].report
    excerpts = read_excerpts(first, rows, report.data, report.split, resolve)
    return DifferingRows(
        rows=rows,
        apart=found,
        closest=errors.argmin(0),
        farthest=errors.argmax(0),
        slots=names,
        excerpts=excerpts,
    )


def apart(answers: Mapping[str, Predictions], names: list[str]) -> Floats:
    """float64[n]: how far the largest prediction is from the smallest, in standard deviations of
    the truths of the same slot; infinite where some predict no number, and 0 where all do.

    >>> both = [Predictions.of([1, 3], one) for one in ([1, 2], [5, 2])]
    >>> apart(dict(zip("ab", both)), ["x", "x"]).tolist()
    [4.0, 0.0]
    """
    every = list(answers.values())
    valid = np.stack([one.valid for one in every])
    values = np.stack([one.prediction for one in every])
    high = np.where(valid, values, -np.inf).max(0)
    low = np.where(valid, values, np.inf).min(0)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.where(valid.all(0), (high - low) / spreads(every[0].truth, names), np.inf)
    return np.where(valid.any(0), found, 0.0)
