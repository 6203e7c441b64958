"""nupa: scores a report, or a file of answers, with the NUPA benchmark.

A report on answers contains generated texts. A report on numbers contains the numbers of each
answer separately; the numbers in each row are joined, in the notation of the true answer, and
scored with the rule ``strict``. A file of answers, for example from another language model,
contains generated texts, each with or without the question before it.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from numtok import files
from numtok.analysis.nupa_tables import MEASURES, Scored, Tables, tables
from numtok.data.nupa.answers import RULES, in_notation, score
from numtok.data.nupa.keys import FRACTION, KEYS
from numtok.data.reading.json_lines import json_lines
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.errors import DataError, UsageError, unknown
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.names import counted
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.registry import name_in
from numtok.reports import REPORT
from numtok.row import GROUP, Row
from numtok.settings.score import Config as Config
from numtok.store.artifact import DATA, Artifact
from numtok.store.store import Store
from numtok.stored_json import decode, reading

_TARGET = "answer"
_LINE = '{"id": "...", "answer": "the generated text"}'


class NupaScores(msgspec.Struct, frozen=True, kw_only=True):
    """Result of scoring ``n`` answers: score tables, the rule by which answers are found in texts,
    and notes for the user."""

    ref: str
    rule: str
    n: int
    tables: Tables
    notes: list[str]


class _Answer(NamedTuple):
    """One row: its task and digit keys, the true answer, and the predicted one, if any."""

    task: str
    digits: str
    gold: str
    predicted: str | None


class _AnswerLine(msgspec.Struct):
    """A line of a file of answers."""

    id: str
    answer: str | None


class _Question(Row):
    """A row of NUPA data, with its true answer."""

    gold: str | None = None


def run(config: Config, store: Store) -> NupaScores:
    """Score a report or a file of answers.

    Raises UsageError if the data is not NUPA data or the rule is not a NUPA rule, DataError if the
    answers do not match the data, and StoreError.
    """
    [first], given_rule = config.files, _rule(config)
    data, path = (config.truth, first) if config.answers is None else (first, config.answers)
    if data is None:
        artifact = store.resolve(first, kinds={REPORT})
        evaluation = read(artifact)
        if evaluation.report.texts is not None:
            rule, notes = given_rule or "published", evaluation.report.notes
            answers = list(_of_texts(ReportPredictions.read(evaluation)))
        elif given_rule is not None:
            raise UsageError(
                f"--rule {given_rule} only applies to reports of answers, and {artifact.ref} is "
                "one of numbers. Remove --rule, or evaluate with `numtok eval --fill answers`"
            )
        else:
            predictions = ReportPredictions.of_numbers(evaluation)
            answers = list(_of_numbers(predictions, _digits(evaluation.report.scheme)))
            rule, notes = "strict", _notes(predictions)
    else:
        artifact = store.resolve(data, kinds={DATA})
        rule = given_rule or "published"
        answers, notes = _of_file(artifact, config.split, path)
    scores = [score(answer.gold, answer.predicted, rule) for answer in answers]
    columns = [[getattr(row, field) for row in scores] for field in MEASURES.values()]
    scored = Scored(
        [answer.task for answer in answers],
        np.array([int(answer.digits) for answer in answers]),
        np.array(columns, np.float64).T,
    )
    return NupaScores(
        ref=artifact.ref, rule=rule, n=len(answers), tables=tables(scored), notes=notes
    )


def _rule(config: Config) -> str | None:
    """Return the rule of the settings, or None. Raises UsageError unless it is one rule of NUPA."""
    if len(config.rules) > 1:
        raise UsageError(
            f"NUPA needs one --rule (got {len(config.rules)}). Score by each separately"
        )
    for rule in config.rules:
        if rule not in RULES:
            raise unknown("rule of NUPA", rule, RULES)
    return next(iter(config.rules), None)


# --- reports ------------------------------------------------------------------------------------


def _of_texts(predictions: ReportPredictions) -> Iterator[_Answer]:
    """Yield the answers of a report of answers."""
    columns = (*_groups(predictions), "answer", "prediction")
    table = predictions.table
    for row in zip(*(table.column(name).to_pylist() for name in columns), strict=True):
        if row[0] not in KEYS:
            raise UsageError(
                f"{predictions.ref}: {row[0]!r} is not a NUPA task. Choose a report on NUPA data"
            )
        yield _Answer(*row)


def _groups(predictions: ReportPredictions) -> list[str]:
    """Return the names of the task and digit columns. Raises UsageError if they are missing."""
    names = [GROUP + name for name in ("task", "digits")]
    if not {*names} <= {*predictions.table.column_names}:
        raise UsageError(
            f"{predictions.ref} lacks the groups task and digits. Choose a report on data of "
            "`numtok gen nupa` or `numtok fetch nupa`"
        )
    return names


def _digits(scheme: str) -> int:
    """Return the number of significant digits that a scheme keeps; 0 for all."""
    kind = SCHEMES[name_in(scheme)] if name_in(scheme) in SCHEMES.names() else None
    single = kind is not None and issubclass(kind, ChannelScheme) and not kind.exact
    return DIGITS_OF_FLOAT32 if single else 0


def _of_numbers(predictions: ReportPredictions, most: int = 0) -> Iterator[_Answer]:
    """Yield the answers of a report of numbers with ``most`` significant digits (0: all)."""
    table, names = predictions.table, _groups(predictions)
    columns = ("id", "target", "position", "truth_literal", "prediction_literal", "valid", *names)
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    parts: dict[str, list[tuple[int, str, str | None]]] = defaultdict(list)
    strata: dict[str, tuple[str, str]] = {}
    for id, target, position, truth, predicted, valid, task, digits in rows:
        if target == _TARGET:
            parts[id].append((position, truth, predicted if valid else None))
            strata[id] = task, digits
    if not parts:
        raise UsageError(f"{predictions.ref} has no target {_TARGET}. Choose a report on NUPA data")
    for id, numbers in parts.items():
        task, digits = strata[id]
        wanted = 2 if task in KEYS and KEYS[task].written == FRACTION else 1
        if task not in KEYS or len(numbers) != wanted:
            raise DataError(
                f"{predictions.ref}: the answer of row {id} of task {task} must have "
                f"{counted(wanted, 'number')} (got {len(numbers)}). Evaluate on unmodified "
                "NUPA data"
            )
        _, golds, literals = zip(*sorted(numbers), strict=True)
        written = map(partial(in_notation, digits=most), golds, literals)
        valid_parts = [part for part in written if part is not None]
        complete = len(valid_parts) == wanted
        yield _Answer(task, digits, "/".join(golds), "/".join(valid_parts) if complete else None)


def _notes(predictions: ReportPredictions) -> list[str]:
    tasks = set(predictions.table.column(f"{GROUP}task").to_pylist())
    if not any(KEYS[task].written == FRACTION for task in tasks if task in KEYS):
        return []
    return [
        "Denominators were predicted after the true numerator. For fractions, exact match is that "
        "of answers generated left to right, but digit match and d-length are better."
    ]


# --- files --------------------------------------------------------------------------------------


def _of_file(artifact: Artifact, split: str, path: str) -> tuple[list[_Answer], list[str]]:
    generated = _read_answers(path)
    answers: dict[str, _Answer] = {}
    count = 0
    for question in _questions(artifact, split):
        count += 1
        id, group = str(question.id), question.group or {}
        if id not in generated:
            continue
        if question.gold is None or group.get("task") not in KEYS or "digits" not in group:
            raise UsageError(
                f"{artifact.ref} is not NUPA data. Choose data of `numtok gen nupa` or "
                "`numtok fetch nupa`"
            )
        text = generated[id]
        if text is not None:
            text = text.removeprefix(question.text[: question.answer_start or 0].rstrip())
        answers[id] = _Answer(str(group["task"]), str(group["digits"]), question.gold, text)
    if not count:
        raise UsageError(f"{artifact.ref} has no split {split!r}. Choose one with --split")
    if others := sorted(generated.keys() - answers.keys()):
        raise DataError(
            f"{path}: {len(others):,} of {len(generated):,} ids are not in split {split!r} of "
            f"{artifact.ref}, such as {others[0]!r}. Answer only rows of that split"
        )
    if not answers:
        raise DataError(f"{path} has no answers. Write one line per answered row")
    notes = [f"{len(answers):,} of {count:,} rows have an answer."]
    return list(answers.values()), [] if len(answers) == count else notes


def _questions(artifact: Artifact, split: str) -> Iterator[_Question]:
    for file in sorted(artifact.path.glob(f"{split}-*.jsonl")):
        with files.reporting("read", file), files.open_regular(file) as lines:
            for line in lines:
                with reading(file):
                    question = decode(line, _Question)
                yield question


def _read_answers(path: str) -> dict[str, str | None]:
    answers: dict[str, str | None] = {}
    for where, _, line in json_lines(path, msgspec.json.Decoder(_AnswerLine), _LINE):
        if line.id in answers:
            raise DataError(f"{where}: id {line.id!r} occurs twice. Remove one of the lines")
        answers[line.id] = line.answer
    return answers
