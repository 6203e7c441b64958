"""The scores of answers that are whole texts (``nupa.answers`` says what each is)."""

from numtok.data.nupa.answers import Score, score
from numtok.metrics.base import Predictions


def scores(answers: Predictions, rule: str) -> list[Score]:
    """The score of each answer; what is not valid was not generated."""
    assert answers.truth_literal is not None and answers.prediction_literal is not None
    every = zip(
        answers.truth_literal, answers.prediction_literal, answers.valid.tolist(), strict=True
    )
    return [score(truth, got if valid else None, rule) for truth, got, valid in every]
