"""Nupa: a report, or answers in a file, -> the tables of the benchmark.

A report of answers has what the model wrote. One of numbers has an answer's numbers one by one:
those of a row are put together, as texts in the notation of the true answer, and compared with it
by the strict rule. Answers in a file, say of another language model, are texts as they were
generated, with or without the question before them.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from numtok import files
from numtok.analysis.nupa_tables import MEASURES, Scored, Tables, tables
from numtok.data.nupa.answers import in_notation, score
from numtok.data.nupa.keys import FRACTION, KEYS
from numtok.data.reading.json_lines import json_lines
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.errors import DataError, UsageError
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.registry import name_in
from numtok.reports import REPORT
from numtok.row import GROUP, Row
from numtok.settings.nupa import Config as Config
from numtok.store.artifact import DATA, Artifact
from numtok.store.store import Store
from numtok.stored_json import decode, reading

_TARGET = "answer"
_LINE = '{"id": "...", "answer": "what was generated"}'


class NupaScores(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of ``n`` answers, the rule that found them, and what a reader must know."""

    ref: str
    rule: str
    n: int
    tables: Tables
    notes: list[str]


class _Answer(NamedTuple):
    """One row: its task and digit keys, the true answer, and what was said, None for nothing."""

    task: str
    digits: str
    gold: str
    said: str | None


class _Given(msgspec.Struct):
    """A line of a file of answers."""

    id: str
    answer: str | None


class _Question(Row):
    """A row of NUPA."""

    gold: str | None = None


def run(config: Config, store: Store) -> NupaScores:
    """Raises UsageError for what is not of NUPA, DataError for answers that do not fit the data,
    and StoreError."""
    if config.answers is None:
        artifact = store.resolve(config.ref, kinds={REPORT})
        evaluation = read(artifact)
        if evaluation.report.texts is not None:
            rule = config.rule or "published"
            answers, notes = (
                list(_of_texts(ReportPredictions.read(evaluation))),
                evaluation.report.notes,
            )
        elif config.rule is not None:
            raise UsageError(
                f"--rule {config.rule} means nothing for a report of numbers; leave it out, or "
                "name a report of `numtok eval --fill answers`"
            )
        else:
            predictions = ReportPredictions.of_numbers(evaluation)
            answers = list(_of_numbers(predictions, _digits(evaluation.report.scheme)))
            rule, notes = "strict", _notes(predictions)
    else:
        artifact = store.resolve(config.ref, kinds={DATA})
        rule = config.rule or "published"
        answers, notes = _of_file(artifact, config.split, config.answers)
    found = [score(one.gold, one.said, rule) for one in answers]
    columns = [[getattr(one, field) for one in found] for field in MEASURES.values()]
    scored = Scored(
        [one.task for one in answers],
        np.array([int(one.digits) for one in answers]),
        np.array(columns, np.float64).T,
    )
    return NupaScores(
        ref=artifact.ref, rule=rule, n=len(answers), tables=tables(scored), notes=notes
    )


# --- reports ------------------------------------------------------------------------------------


def _of_texts(predictions: ReportPredictions) -> Iterator[_Answer]:
    """Of a report of answers."""
    columns = (*_groups(predictions), "answer", "prediction")
    table = predictions.table
    for row in zip(*(table.column(name).to_pylist() for name in columns), strict=True):
        if row[0] not in KEYS:
            raise UsageError(f"{predictions.ref}: {row[0]!r} is no task of NUPA; name its report")
        yield _Answer(*row)


def _groups(predictions: ReportPredictions) -> list[str]:
    """The columns of a row's task and digit key; UsageError where there are none."""
    names = [GROUP + name for name in ("task", "digits")]
    if not {*names} <= {*predictions.table.column_names}:
        raise UsageError(
            f"{predictions.ref} has no groups task and digits; name a report on data of "
            "`numtok gen nupa` or `numtok fetch nupa`"
        )
    return names


def _digits(scheme: str) -> int:
    """How many digits the numbers of a scheme are known to; 0: all that it writes."""
    kind = SCHEMES[name_in(scheme)] if name_in(scheme) in SCHEMES.names() else None
    single = kind is not None and issubclass(kind, ChannelScheme) and not kind.exact
    return DIGITS_OF_FLOAT32 if single else 0


def _of_numbers(predictions: ReportPredictions, most: int = 0) -> Iterator[_Answer]:
    """Of a report of numbers, of which ``most`` digits are known."""
    table, names = predictions.table, _groups(predictions)
    columns = ("id", "target", "position", "truth_literal", "prediction_literal", "valid", *names)
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    parts: dict[str, list[tuple[int, str, str | None]]] = defaultdict(list)
    strata: dict[str, tuple[str, str]] = {}
    for id, target, position, truth, said, valid, task, digits in rows:
        if target == _TARGET:
            parts[id].append((position, truth, said if valid else None))
            strata[id] = task, digits
    if not parts:
        raise UsageError(f"{predictions.ref} has no target {_TARGET}; name a report of NUPA")
    for id, numbers in parts.items():
        task, digits = strata[id]
        wanted = 2 if task in KEYS and KEYS[task].written == FRACTION else 1
        if task not in KEYS or len(numbers) != wanted:
            raise DataError(
                f"{predictions.ref}: row {id} of task {task} has {len(numbers)} numbers in its "
                f"answer, for {wanted}; evaluate on data of NUPA as it was made"
            )
        _, golds, said = zip(*sorted(numbers), strict=True)
        told = map(partial(in_notation, digits=most), golds, said)
        known = [one for one in told if one is not None]
        yield _Answer(
            task, digits, "/".join(golds), "/".join(known) if len(known) == wanted else None
        )


def _notes(predictions: ReportPredictions) -> list[str]:
    tasks = set(predictions.table.column(f"{GROUP}task").to_pylist())
    if not any(KEYS[task].written == FRACTION for task in tasks if task in KEYS):
        return []
    return [
        "A denominator was predicted behind the true numerator: of fractions exact match is that "
        "of answers written from left to right, digit match and d-length are rather better."
    ]


# --- files --------------------------------------------------------------------------------------


def _of_file(artifact: Artifact, split: str, path: str) -> tuple[list[_Answer], list[str]]:
    given = _read_given(path)
    answers: dict[str, _Answer] = {}
    count = 0
    for file in sorted(artifact.path.glob(f"{split}-*.jsonl")):
        with files.reporting("read", file), files.open_regular(file) as rows:
            for line in rows:
                count += 1
                with reading(file):
                    row = decode(line, _Question)
                id, group = str(row.id), row.group or {}
                if id in given:
                    if row.gold is None or group.get("task") not in KEYS or "digits" not in group:
                        raise UsageError(f"{artifact.ref} is no data of NUPA; name what is")
                    said = given[id]
                    if said is not None:
                        said = said.removeprefix(row.text[: row.answer_start or 0].rstrip())
                    answers[id] = _Answer(str(group["task"]), str(group["digits"]), row.gold, said)
    if not count:
        raise UsageError(f"{artifact.ref} has no split {split!r}; name one that it has")
    if unknown := sorted(given.keys() - answers.keys()):
        raise DataError(
            f"{path}: id {unknown[0]!r} is not in split {split!r} of {artifact.ref}, and so are "
            f"{len(unknown):,} of {len(given):,} ids; give answers to these rows"
        )
    if not answers:
        raise DataError(f"{path} has no answers; give a line for each row that was asked")
    asked = "" if len(answers) == count else f"{len(answers):,} of {count:,} rows were asked."
    return list(answers.values()), [asked] if asked else []


def _read_given(path: str) -> dict[str, str | None]:
    given: dict[str, str | None] = {}
    for where, _, one in json_lines(path, msgspec.json.Decoder(_Given), _LINE):
        if one.id in given:
            raise DataError(f"{where}: id {one.id!r} comes twice; leave one")
        given[one.id] = one.answer
    return given
