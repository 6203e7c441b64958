"""Answers read by a rule, as predictions that metrics take."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.errors import DataError
from numtok.evaluation.answer_scores.answer_files import Answers
from numtok.metrics.base import Predictions
from numtok.numerals.answers.read import read_answers, same_form
from numtok.numerals.answers.rules import AnswerRule
from numtok.numerals.column import Numerals
from numtok.numerals.policy import NumeralPolicy

_LARGEST = float(np.finfo(np.float64).max)


class TrueValues(NamedTuple):
    """True values of n questions.

    literals
        n literals, as found in the texts of the true values.
    values
        float64[n], finite.
    clusters
        int64[n], index of the cluster of each question; None if every question is one.
    """

    literals: Sequence[str]
    values: Floats
    clusters: Ints | None


def read_true_values(
    answers: Answers, rule: AnswerRule, policy: NumeralPolicy, *, skip: bool = False
) -> tuple[Answers, TrueValues]:
    """Read the true values by a rule. Return them with the answers that have one.

    Raises DataError if the rule finds no number in a true value, or one that is too large for
    float64. With ``skip``, such rows are left out and counted.
    """
    literals = read_answers(answers.truths, rule, policy)
    values = Numerals.of_literals([literal or "nan" for literal in literals]).values
    is_bad = ~np.isfinite(values)
    if is_bad.any():
        row = int(is_bad.argmax())
        text, literal = answers.truths[row], literals[row]
        if not skip and literal is None:
            shown = repr(text if len(text) <= 60 else f"{text[:57]}...")
            raise DataError(
                f"{answers.locations[row]}: the true value must be one number (got {shown}). Find "
                "it in a longer text with --truth-rule, or leave the row out: --on-error skip"
            )
        if not skip:
            raise DataError(
                f"{answers.locations[row]}: the true value {literal} is too large for float64. "
                "Leave the row out: --on-error skip"
            )
        answers = answers.take(np.flatnonzero(~is_bad).tolist(), "the true value is not a number")
        if not answers.ids:
            raise DataError("no row has a true value. Name its field with --truth-field")
    kept = [literal for literal, bad in zip(literals, is_bad, strict=True) if literal and not bad]
    return answers, TrueValues(kept, values[~is_bad], _codes(answers.clusters))


def _codes(clusters: Sequence[str] | None) -> Ints | None:
    """Return the index of each row's cluster, int64[n]; None without clusters."""
    if clusters is None:
        return None
    codes: dict[str, int] = {}
    return np.array([codes.setdefault(name, len(codes)) for name in clusters], np.int64)


def answer_literals(
    texts: Sequence[str | None], truth: TrueValues, rule: AnswerRule, policy: NumeralPolicy
) -> list[str | None]:
    """Return the literal of each answer. With the rule ``strict``, answers that are not written in
    the form of the true value are None."""
    literals = read_answers(texts, rule, policy)
    if not rule.is_strict:
        return literals
    return [
        literal if literal is not None and same_form(literal, own) else None
        for literal, own in zip(literals, truth.literals, strict=True)
    ]


def as_predictions(literals: Sequence[str | None], truth: TrueValues) -> Predictions:
    """Return answers as predictions of numbers.

    A missing answer is invalid, and infinitely far from the true value. An answer that is too large
    for float64 counts as the largest float64, except for metrics that compare digits.
    """
    valid = np.array([literal is not None for literal in literals], np.bool_)
    values = np.full(len(literals), np.inf)
    answered = [literal for literal in literals if literal is not None]
    values[valid] = np.clip(Numerals.of_literals(answered).values, -_LARGEST, _LARGEST)
    predictions = Predictions.of(
        truth.values,
        values,
        truth_literal=list(truth.literals),
        prediction_literal=list(literals),
    )
    return predictions._replace(valid=valid, sample=truth.clusters)
