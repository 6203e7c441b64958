"""score: scores the numbers in generated answers, of one or more models.

Answers and true values come from JSONL files. Each rule chooses one number of each answer, which is
compared with the true value as a decimal number. Several models are compared on the same rows.
"""

import json
from collections.abc import Iterator
from typing import Any

from numtok import files
from numtok.evaluation.answer_scores.answer_files import Answers, read_answer_files
from numtok.evaluation.answer_scores.scores import AnswerScores, ReadAnswers, Scoring
from numtok.settings.score import Config as Config


def run(config: Config) -> AnswerScores:
    """Score files of answers, and write what was read if the settings ask for it.

    Raises UsageError for an invalid setting, DataError for rows that cannot be scored, and
    StoreError if the file of readings cannot be written.
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
        read_answer_files(config.files, config.truth, names, skip=scoring.skip)
    )
    scores = scoring.score(answers, numbers)
    if config.out is not None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in readings(answers, numbers))
        files.write_atomic(config.out, "".join(lines).encode())
    return scores


def readings(answers: Answers, numbers: ReadAnswers) -> Iterator[dict[str, Any]]:
    """Yield what was read of each row: its id, the true value, and by model and rule the number and
    whether it is right."""
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
