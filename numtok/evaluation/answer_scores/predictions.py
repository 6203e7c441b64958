"""Extracts numbers from answers by a rule, and converts them to predictions that metrics can
score."""

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
        n literals, as written in the texts of the true values.
    values
        float64[n], finite.
    clusters
        int64[n], index of each question's cluster; None if each question is its own cluster.
    """

    literals: Sequence[str]
    values: Floats
    clusters: Ints | None


def read_true_values(
    answers: Answers, rule: AnswerRule, policy: NumeralPolicy, *, skip: bool
) -> tuple[Answers, TrueValues]:
    """Extract the true values by a rule. Return the answers to the questions that have a true
    value, and the true values.

    Raises DataError if the rule finds no number in the text of a true value, or a number that is
    too large for float64. If ``skip`` is set, such rows are left out and counted instead, and
    DataError is raised only if no row remains.
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
    """Return the index of each row's cluster, int64[n], or None if ``clusters`` is None."""
    if clusters is None:
        return None
    codes: dict[str, int] = {}
    return np.array([codes.setdefault(name, len(codes)) for name in clusters], np.int64)


def answer_literals(
    texts: Sequence[str | None], truth: TrueValues, rule: AnswerRule, policy: NumeralPolicy
) -> list[str | None]:
    """Return the literal of each answer, or None if the rule finds no number in it.

    With the rule ``strict``, the result is also None for answers that are not written in the form
    of the true value (see :func:`~numtok.numerals.answers.read.same_form`).
    """
    literals = read_answers(texts, rule, policy)
    if not rule.is_strict:
        return literals
    return [
        literal if literal is not None and same_form(literal, own) else None
        for literal, own in zip(literals, truth.literals, strict=True)
    ]


def as_predictions(literals: Sequence[str | None], truth: TrueValues) -> Predictions:
    """Convert the literals of answers to predictions.

    A missing answer becomes an invalid prediction of infinity. An answer that is too large for
    float64 is clipped to the largest float64; metrics that compare digits use its literal.
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
