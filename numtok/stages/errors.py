"""Analysis of errors in the parts of predicted numbers: sign, mantissa and exponent.

True and predicted values are rounded to the same number of significant digits
(``evaluation.number_parts``). The analysis answers three questions (xVal, Section 3.2 and Figure
4):

1. Which parts are wrong, and how much of the squared error do they cause? Predicting 1 for 0.1
   gets only the exponent wrong.
2. Are the parts, and their combinations, predicted as often as they occur?
3. Are common parts combined too often? A model that fills in mantissa and exponent independently
   predicts the most common value of each.

Reports on one model with ``eval --fill parallel`` and ``--fill left-to-right`` separate decoding
errors from encoding errors: an error that disappears when each token is predicted from the previous
ones is a decoding error. For this purpose, reports on the same model are compared number by number.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok.evaluation.comparison.experiments import experiment_settings, labels
from numtok.evaluation.number_parts import (
    KINDS,
    NumberParts,
    PartShares,
    by_chance,
    decimal_parts,
    kind,
)
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.metrics.base import Predictions, means
from numtok.reports import REPORT, Figure
from numtok.settings.diagnose import Config as Config
from numtok.store.store import Store


class ErrorShare(msgspec.Struct, frozen=True):
    """Frequency of one kind of error.

    share
        Fraction of the numbers that have this error, with a 95% bootstrap interval over samples.
    of_squares
        Fraction of the sum of squared errors that is due to this error; None if the sum is 0.
    """

    kind: str
    share: Figure
    of_squares: float | None


class Distance(msgspec.Struct, frozen=True):
    """Total variation distance (0 to 1) between the predicted and the true frequencies of a part of
    the numbers, such as the exponent.

    ``by_chance`` is the distance expected if true and predicted values have the same distribution.
    ``value`` and ``by_chance`` are None if no prediction is a number.
    """

    part: str
    value: float | None
    by_chance: float | None


class NumberFrequency(msgspec.Struct, frozen=True, kw_only=True):
    """Frequency of one number, ignoring its sign, among the true values and among the predicted
    values.

    independent
        Frequency that the number would have among predictions if mantissas and exponents were
        independent; None for zero, which has no exponent.
    of_squares
        Fraction of the sum of squared errors caused by predictions of this number; None if that sum
        is 0.
    """

    number: str
    truth: float
    predicted: float
    independent: float | None
    of_squares: float | None


class ReportErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Errors in one report.

    commonest
        The most frequent true mantissa combined with the most frequent true exponent; None if all
        true values are 0.
    surplus
        Numbers that are predicted more often than they occur, in descending order of the
        difference.
    """

    label: str
    report: str
    numbers: int
    errors: list[ErrorShare]
    distances: list[Distance]
    commonest: NumberFrequency | None
    surplus: list[NumberFrequency]


class ErrorDifference(msgspec.Struct, frozen=True):
    """Difference in the frequency of one kind of error between two reports on one model. ``share``
    is the fraction in the report ``label`` minus the fraction in the report ``reference``, with a
    95% bootstrap interval over samples."""

    label: str
    reference: str
    kind: str
    share: Figure


class ErrorAnalysis(msgspec.Struct, frozen=True):
    """Errors in each report, in the given order, and differences from the first report on the same
    model and the same rows."""

    errors: list[ReportErrors]
    differences: list[ErrorDifference]


def run(config: Config, store: Store) -> ErrorAnalysis:
    """Analyze the errors in reports. Raises UsageError if the target is unknown or a report has
    labels instead of numbers."""
    evaluations = [read(store.resolve(ref, {REPORT})) for ref in config.reports]
    settings = [
        experiment_settings(evaluation) | {"seed": str(evaluation.report.seed)}
        for evaluation in evaluations
    ]
    names = labels([evaluation.report.scheme for evaluation in evaluations], settings)
    analyses, differences = [], []
    firsts: dict[tuple[object, ...], tuple[str, ReportPredictions]] = {}
    for name, evaluation in zip(names, evaluations, strict=True):
        predictions = ReportPredictions.of_numbers(evaluation)
        own = predictions.of_target(config.target).answers
        analyses.append(report_errors(config, name, predictions.ref, own))
        report = evaluation.report
        rows = report.model, report.data, report.split, report.rows
        reference, first = firsts.setdefault(rows, (name, predictions))
        if first is not predictions:
            first.check_pairs(predictions)
            other = first.of_target(config.target).answers
            differences += _differences(config, (reference, other), (name, own))
    return ErrorAnalysis(analyses, differences)


def report_errors(config: Config, label: str, ref: str, answers: Predictions) -> ReportErrors:
    """Return the analysis of one report's errors. ``answers`` are its predictions, and ``label`` is
    its name in the result."""
    truths, predictions = decimal_parts(answers, config.digits)
    kinds = _kinds(truths, predictions)
    sizes = np.array(["" if parts is None else parts.size for parts in predictions])
    errors = np.abs(answers.prediction - answers.truth)
    # Scaled by the largest error, so that squares do not overflow.
    squares = (errors / max(errors.max(), np.finfo(np.float64).tiny)) ** 2
    whole = float(squares.sum())

    def share_of_squares(rows: NDArray[np.bool_]) -> float | None:
        return float(squares[rows].sum()) / whole if whole else None

    valid = [parts for parts in predictions if parts is not None]
    true, predicted = PartShares.of(truths), PartShares.of(valid)
    # Zero has no exponent, so there is nothing to combine.
    true_parts = PartShares.of([parts for parts in truths if parts.exponent])
    combined = [parts for parts in valid if parts.exponent]
    of_combined, not_zero = PartShares.of(combined), len(combined) / max(1, len(valid))

    def frequency(name: str) -> NumberFrequency:
        mantissa, mark, power = name.partition("E")
        exponent = mark + power
        unrelated = of_combined.mantissa.get(mantissa, 0.0) * of_combined.exponent.get(exponent, 0)
        return NumberFrequency(
            number=name,
            truth=true.number.get(name, 0.0),
            predicted=predicted.number.get(name, 0.0),
            independent=unrelated * not_zero if exponent else None,
            of_squares=share_of_squares(sizes == name),
        )

    surplus = {
        number: share - true.number.get(number, 0.0) for number, share in predicted.number.items()
    }
    worst = sorted(surplus, key=lambda number: (-surplus[number], number))[: config.top]
    return ReportErrors(
        label=label,
        report=ref,
        numbers=len(truths),
        errors=[
            ErrorShare(name, share, share_of_squares(kinds == name))
            for name, share in zip(KINDS, means(_columns(kinds), answers, shares=True), strict=True)
        ],
        distances=[
            _distance(part, *pair, len(truths), len(valid))
            for part, pair in zip(
                PartShares._fields, zip(true, predicted, strict=True), strict=True
            )
        ],
        commonest=frequency(_commonest(true_parts.mantissa) + _commonest(true_parts.exponent))
        if true_parts.number
        else None,
        surplus=[frequency(number) for number in worst if surplus[number] > 0],
    )


def _differences(
    config: Config, reference: tuple[str, Predictions], other: tuple[str, Predictions]
) -> list[ErrorDifference]:
    (first, before), (second, after) = reference, other
    both = [_columns(_kinds(*decimal_parts(answers, config.digits))) for answers in (before, after)]
    columns = [now - then for then, now in zip(*both, strict=True)]
    return [
        ErrorDifference(second, first, name, share)
        for name, share in zip(KINDS, means(columns, after), strict=True)
    ]


def _kinds(
    truths: Sequence[NumberParts], predictions: Sequence[NumberParts | None]
) -> NDArray[np.str_]:
    return np.array([kind(*pair) for pair in zip(truths, predictions, strict=True)])


def _columns(kinds: NDArray[np.str_]) -> list[NDArray[np.float64]]:
    """Return a 0/1 indicator column [n] for each kind of error."""
    return [(kinds == name).astype(np.float64) for name in KINDS]


def _commonest(shares: Mapping[str, float]) -> str:
    return min(shares, key=lambda part: (-shares[part], part))


def _distance(
    part: str,
    true: Mapping[str, float],
    predicted: Mapping[str, float],
    truths: int,
    predictions: int,
) -> Distance:
    if not predictions:
        return Distance(part, None, None)
    differences = (abs(true.get(x, 0.0) - predicted.get(x, 0.0)) for x in {**true, **predicted})
    return Distance(part, sum(differences) / 2, by_chance(true, predicted, truths, predictions))
