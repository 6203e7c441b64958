"""score: scores the numbers in the generated answers of one or more models.

Answers and true values are read from JSONL files. Each rule chooses one number in each answer. This
number is compared with the true value as a decimal number. Several models are compared on the same
rows.
"""

import json
from collections.abc import Iterator
from typing import Any

from numtok import files
from numtok.evaluation.answer_scores.answer_files import Answers, read_answer_files
from numtok.evaluation.answer_scores.scores import AnswerScores, ReadAnswers, Scoring
from numtok.settings.score import Config as Config


def run(config: Config) -> AnswerScores:
    """Score answer files. If ``config.out`` is set, also write the numbers read from the answers to
    that file (see :func:`readings`).

    Raises UsageError if a setting is invalid, DataError if a row cannot be scored, and StoreError
    if the output file cannot be written.
    """
    if config.out is not None:
        files.check_output("--out", config.out)
    scoring = Scoring.of(config)
    names = {
        "answer": config.answer_field,
        "truth": config.truth_field,
        "id": config.id_field,
        "cluster": config.cluster_field,
    }
    answers, numbers = scoring.read(
        read_answer_files(config.files, config.truth, names, comma=scoring.comma, skip=scoring.skip)
    )
    scores = scoring.score(answers, numbers)
    if config.out is not None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in readings(answers, numbers))
        files.write_atomic(config.out, "".join(lines).encode())
    return scores


def readings(answers: Answers, numbers: ReadAnswers) -> Iterator[dict[str, Any]]:
    """Yield a record per row: its id, its true value and, for each model and rule, the number that
    was read and whether it is correct."""
    right = {
        model: {rule: numbers.right(model, rule) for rule in rules}
        for model, rules in numbers.literals.items()
    }
    for row, (id, truth) in enumerate(zip(answers.ids, numbers.truth.literals, strict=True)):
        read = {
            model: {
                rule: {"number": literals[row], "right": right[model][rule][row]}
                for rule, literals in rules.items()
            }
            for model, rules in numbers.literals.items()
        }
        yield {"id": id, "truth": truth, "models": read}
