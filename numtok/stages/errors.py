"""Errors: where predictions go wrong in the parts of numbers, sign, mantissa and exponent.

Truth and prediction are decimal numbers of as many digits (``evaluation.number_parts``). Three
questions (xVal, Section 3.2 and Figure 4):

1. Which parts are wrong, and how much of the squared error is due to that? Taking 1 for 0.1 is a
   wrong exponent alone.
2. Are the parts, and their combinations, predicted as often as they come?
3. Do parts that are common each come together too often? A model that fills in a mantissa and an
   exponent without regard to each other predicts the most common of both.

``eval --fill parallel`` and ``--fill left-to-right`` of one model tell errors of decoding from
those of encoding: what goes away when each token sees the ones before was never in the model's
distribution of whole numbers. So reports of one model are compared number by number.
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
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.metrics.base import Predictions, means
from numtok.reports import REPORT, Figure
from numtok.settings.diagnose import Config as Config
from numtok.store.store import Store


class ErrorShare(msgspec.Struct, frozen=True):
    """The numbers that are wrong in one way: their share, with a 95% bootstrap interval over
    samples, and their share of the sum of squared errors (None where that is 0)."""

    kind: str
    share: Figure
    of_squares: float | None


class Distance(msgspec.Struct, frozen=True):
    """How far the predicted frequencies of a part are from the true ones: the total variation, from
    0 to 1. ``by_chance`` is what is to be expected of it where truths and predictions are drawn
    alike. None where no prediction is a number."""

    part: str
    value: float | None
    by_chance: float | None


class NumberFrequency(msgspec.Struct, frozen=True, kw_only=True):
    """How often one number comes, whatever its sign: among truths, among predictions, and among
    predictions if their mantissa told nothing of their exponent (None of zero, which has none);
    ``of_squares`` is the share that predicting it has of the sum of squared errors."""

    number: str
    truth: float
    predicted: float
    independent: float | None
    of_squares: float | None


class ReportErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Of one report.

    commonest
        The most common mantissa of the truths, with their most common exponent; None where all
        are 0.
    surplus
        The numbers predicted most beyond their share, the worst first.
    """

    label: str
    report: str
    numbers: int
    errors: list[ErrorShare]
    distances: list[Distance]
    commonest: NumberFrequency | None
    surplus: list[NumberFrequency]


class ErrorDifference(msgspec.Struct, frozen=True):
    """Two reports of one model, by their labels: the share of one kind in ``label`` less that in
    ``reference``, of the same numbers, with a 95% bootstrap interval over samples."""

    label: str
    reference: str
    kind: str
    share: Figure


class ErrorAnalysis(msgspec.Struct, frozen=True):
    """The errors of each report, in order, and the differences of each from the first report of
    the same model on the same rows."""

    errors: list[ReportErrors]
    differences: list[ErrorDifference]


def run(config: Config, store: Store) -> ErrorAnalysis:
    """Raises UsageError for an unknown target and for a report of labels."""
    evaluations = [read(store.resolve(ref, {REPORT})) for ref in config.reports]
    settings = [experiment_settings(one) | {"seed": str(one.report.seed)} for one in evaluations]
    names = labels([one.report.scheme for one in evaluations], settings)
    found, differences = [], []
    firsts: dict[tuple[object, ...], tuple[str, ReportPredictions]] = {}
    for name, evaluation in zip(names, evaluations, strict=True):
        predictions = ReportPredictions.of_numbers(evaluation)
        own = predictions.of_target(config.target).answers
        found.append(report_errors(config, name, predictions.ref, own))
        reference, first = firsts.setdefault(_same_rows(evaluation), (name, predictions))
        if first is not predictions:
            first.check_pairs(predictions)
            other = first.of_target(config.target).answers
            differences += _differences(config, (reference, other), (name, own))
    return ErrorAnalysis(found, differences)


def _same_rows(evaluation: Evaluation) -> tuple[object, ...]:
    report = evaluation.report
    return report.model, report.data, report.split, report.rows


def report_errors(config: Config, label: str, ref: str, answers: Predictions) -> ReportErrors:
    """What is wrong with some answers."""
    truths, found = decimal_parts(answers, config.digits)
    kinds = _kinds(truths, found)
    sizes = np.array(["" if one is None else one.size for one in found])
    errors = np.abs(answers.prediction - answers.truth)
    squares = (errors / max(errors.max(), np.finfo(np.float64).tiny)) ** 2  # the largest overflow
    whole = float(squares.sum())

    def share_of_squares(rows: NDArray[np.bool_]) -> float | None:
        return float(squares[rows].sum()) / whole if whole else None

    valid = [one for one in found if one is not None]
    true, predicted = PartShares.of(truths), PartShares.of(valid)
    # Zero has no parts that could be combined.
    parts = PartShares.of([one for one in truths if one.exponent])
    combined = [one for one in valid if one.exponent]
    of_combined, not_zero = PartShares.of(combined), len(combined) / max(1, len(valid))

    def size(mantissa: str, exponent: str) -> NumberFrequency:
        name = mantissa + exponent
        unrelated = of_combined.mantissa.get(mantissa, 0.0) * of_combined.exponent.get(exponent, 0)
        return NumberFrequency(
            number=name,
            truth=true.number.get(name, 0.0),
            predicted=predicted.number.get(name, 0.0),
            independent=unrelated * not_zero if exponent else None,
            of_squares=share_of_squares(sizes == name),
        )

    surplus = {one: share - true.number.get(one, 0.0) for one, share in predicted.number.items()}
    worst = sorted(surplus, key=lambda one: (-surplus[one], one))[: config.top]
    return ReportErrors(
        label=label,
        report=ref,
        numbers=len(truths),
        errors=[
            ErrorShare(one, share, share_of_squares(kinds == one))
            for one, share in zip(KINDS, means(_columns(kinds), answers, shares=True), strict=True)
        ],
        distances=[
            _distance(part, *pair, len(truths), len(valid))
            for part, pair in zip(
                PartShares._fields, zip(true, predicted, strict=True), strict=True
            )
        ],
        commonest=size(_commonest(parts.mantissa), _commonest(parts.exponent))
        if parts.number
        else None,
        surplus=[size(*_split(one)) for one in worst if surplus[one] > 0],
    )


def _differences(
    config: Config, reference: tuple[str, Predictions], other: tuple[str, Predictions]
) -> list[ErrorDifference]:
    (first, before), (second, after) = reference, other
    both = [_columns(_kinds(*decimal_parts(one, config.digits))) for one in (before, after)]
    columns = [now - then for then, now in zip(*both, strict=True)]
    return [
        ErrorDifference(second, first, one, share)
        for one, share in zip(KINDS, means(columns, after), strict=True)
    ]


def _kinds(
    truths: Sequence[NumberParts], found: Sequence[NumberParts | None]
) -> "NDArray[np.str_]":
    return np.array([kind(*pair) for pair in zip(truths, found, strict=True)])


def _columns(kinds: "NDArray[np.str_]") -> list[NDArray[np.float64]]:
    """A column for each kind: 1 where a number is of it."""
    return [(kinds == one).astype(np.float64) for one in KINDS]


def _commonest(shares: Mapping[str, float]) -> str:
    return min(shares, key=lambda one: (-shares[one], one))


def _split(number: str) -> tuple[str, str]:
    mantissa, mark, exponent = number.partition("E")
    return mantissa, mark + exponent


def _distance(
    part: str,
    true: Mapping[str, float],
    predicted: Mapping[str, float],
    truths: int,
    predictions: int,
) -> Distance:
    if not predictions:
        return Distance(part, None, None)
    apart = sum(abs(true.get(one, 0.0) - predicted.get(one, 0.0)) for one in {**true, **predicted})
    return Distance(part, apart / 2, by_chance(true, predicted, truths, predictions))
