"""Answers of models and their true values, read from JSONL files and joined by id."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from numtok.data.reading.json_lines import json_lines
from numtok.errors import DataError, UsageError
from numtok.evaluation.answer_scores.json_fields import JsonFields
from numtok.row import CLUSTER

_ENDING = re.compile(r"(\.(jsonl|ndjson|json|txt))?(\.(gz|zst))?$")
_SKIP = "Leave such rows out: --on-error skip"


@dataclass(frozen=True)
class Answers:
    """Answers of one or more models to the same n questions.

    ids, truths
        Id and true value of each question, both as text.
    locations
        ``FILE:LINE`` of each true value.
    answers
        Generated texts [n], keyed by the name of the model; None for a missing answer.
    clusters
        Cluster of each question, [n]; None if no row has a cluster.
    left_out
        Number of rows that were left out, keyed by the reason.
    """

    ids: Sequence[str]
    truths: Sequence[str]
    locations: Sequence[str]
    answers: Mapping[str, Sequence[str | None]]
    clusters: Sequence[str] | None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def take(self, rows: Sequence[int], reason: str) -> "Answers":
        """Return the answers to the questions at the given indices. The other questions are counted
        in ``left_out`` under ``reason``."""

        def part(column: Sequence[Any]) -> list[Any]:
            return [column[row] for row in rows]

        left_out = len(self.ids) - len(rows)
        return Answers(
            ids=part(self.ids),
            truths=part(self.truths),
            locations=part(self.locations),
            answers={name: part(texts) for name, texts in self.answers.items()},
            clusters=None if self.clusters is None else part(self.clusters),
            left_out={**self.left_out, reason: left_out} if left_out else self.left_out,
        )


def read_answer_files(
    files: Sequence[str],
    truth: str | None,
    names: Mapping[str, str],
    *,
    comma: bool,
    skip: bool,
) -> Answers:
    """Return the answers in ``files``, one file per model.

    truth
        File of the true values; None if the answer files contain them.
    names
        Names of the fields, keyed by ``answer``, ``truth``, ``id`` and ``cluster``.
    comma
        True if answers and true values have decimal commas. JSON numbers are then written with one.
    skip
        True to count bad rows and leave them out, instead of raising DataError.

    Raises UsageError if a file is missing. Raises DataError if a line is unreadable, if an id is
    missing or repeated, if a row has no true value or is not in every file, or if two files have
    different true values for the same id.
    """
    return _Join(names, ("answer", "truth") if comma else (), skip).read(files, truth)


class _Line(NamedTuple):
    where: str
    texts: Mapping[str, str | None]  # by key


class _Join:
    def __init__(self, names: Mapping[str, str], comma: Collection[str], skip: bool) -> None:
        self.names, self.comma, self.skip = names, comma, skip
        self.left_out: Counter[str] = Counter()

    def read(self, files: Sequence[str], truth: str | None) -> Answers:
        joined = truth is not None or len(files) > 1
        tables = {
            name: self._table(
                file, ["answer"] if truth is not None else ["answer", "truth"], joined
            )
            for name, file in zip(model_names(files), files, strict=True)
        }
        first = next(iter(tables.values()))
        gold = first if truth is None else self._table(truth, ["truth"], joined)
        if truth is None:
            self._check_truths(tables.values())
        source = files[0] if truth is None else truth
        for table, file in zip(tables.values(), files, strict=True):
            self._check_ids(table, file, gold, source)
        ids = [id for id in gold if all(id in table for table in tables.values())]
        if not ids:
            raise DataError(f"{files[0]} has no answer to score. Write one JSON object per line")
        clusters = self._clusters(ids, [gold, *tables.values()])
        return Answers(
            ids=ids,
            truths=[str(gold[id].texts["truth"]) for id in ids],
            locations=[gold[id].where for id in ids],
            answers={
                name: [table[id].texts["answer"] for id in ids] for name, table in tables.items()
            },
            clusters=clusters_of(ids, clusters),
            left_out=dict(self.left_out),
        )

    def _clusters(
        self, ids: Sequence[str], tables: Sequence[Mapping[str, _Line]]
    ) -> list[str | None]:
        """Return the cluster of each row, from the files that have one. Raises DataError if two
        files differ, and UsageError if no row has the field that was named."""
        clusters: list[str | None] = []
        for id in ids:
            lines = [table[id] for table in tables if table[id].texts.get("cluster")]
            for first, other in pairwise(lines):
                ours, theirs = first.texts["cluster"], other.texts["cluster"]
                if ours != theirs:
                    raise DataError(
                        f"{other.where}: id {id!r} is in the cluster {theirs!r}, but in {ours!r} "
                        f"at {first.where}. Use one of them"
                    )
            clusters.append(lines[0].texts["cluster"] if lines else None)
        name = self.names["cluster"]
        if name != CLUSTER and not any(clusters):
            raise UsageError(
                f"--cluster-field {name!r}: no row has this field. Name the field with the clusters"
            )
        return clusters

    def _table(self, file: str, needed: Sequence[str], joined: bool) -> dict[str, _Line]:
        """Return the lines of a file, keyed by id. If the file is not joined with others, a line
        without an id is keyed by its line number."""
        keys = (*needed, "id", "cluster")
        decoder = JsonFields({key: self.names[key] for key in keys}, self.comma)
        form = "{" + ", ".join(f'"{self.names[key]}": ...' for key in ("id", *needed)) + "}"
        table: dict[str, _Line] = {}
        for where, _, texts in json_lines(file, decoder, form):
            id = texts.get("id")
            if id is None and not joined:
                id = where.rpartition(":")[2]
            problem, remedy = self._problem(id, texts, needed, table)
            if problem and not self.skip:
                raise DataError(f"{where}: {problem}. {remedy}")
            if problem:
                self.left_out[problem.partition(" (")[0]] += 1
            else:
                assert id is not None
                table[id] = _Line(where, texts)
        return table

    def _problem(
        self,
        id: str | None,
        texts: Mapping[str, str | None],
        needed: Sequence[str],
        table: Mapping[str, _Line],
    ) -> tuple[str, str]:
        """Return the problem with a line and how to solve it, or two empty strings if the line is
        valid."""
        for key in ("id", *needed):
            name = self.names[key]
            if key not in texts and not (key == "id" and id is not None):
                remedy = f"Name the field with --{key}-field"
                if key == "truth":
                    remedy += ", or pass the file of the true values with --truth"
                return f"the field {name!r} is missing", remedy
        if id is None:
            return f"{self.names['id']!r} is null", "Write a string or an integer"
        if id in table:
            return f"an id occurs twice ({id!r})", _SKIP
        if "truth" in needed and texts["truth"] is None:
            return "the true value is null", _SKIP
        return "", ""

    def _check_ids(
        self, table: Mapping[str, _Line], file: str, gold: Mapping[str, _Line], source: str
    ) -> None:
        """Raise DataError unless both files have the same ids. If ``skip`` is set, count the ids
        that only one file has instead."""
        for having, whole, lacking, part in (
            (file, table, source, gold),
            (source, gold, file, table),
        ):
            missing = whole.keys() - part.keys()
            if missing and not self.skip:
                raise DataError(
                    f"{lacking} lacks {len(missing):,} of the {len(whole):,} ids in {having}, such "
                    f"as {min(missing)!r}. Add them, or leave them out: --on-error skip"
                )
            if missing:
                self.left_out[f"not in {lacking}"] += len(missing)

    def _check_truths(self, tables: Collection[Mapping[str, _Line]]) -> None:
        """Raise DataError if two files have different true values for one id."""
        first, *others = tables
        for table in others:
            for id in table.keys() & first.keys():
                ours, theirs = first[id], table[id]
                if ours.texts["truth"] != theirs.texts["truth"]:
                    raise DataError(
                        f"{theirs.where}: id {id!r} has the true value {theirs.texts['truth']!r}, "
                        f"but {ours.texts['truth']!r} at {ours.where}. Compare answers to the same "
                        "questions"
                    )


def clusters_of(ids: Sequence[str], clusters: Sequence[str | None]) -> list[str] | None:
    """Return the cluster of each row; None if no row has one. A row without a cluster forms its own
    cluster."""
    if not any(clusters):
        return None
    return [
        f"row {id}" if own is None else f"cluster {own}"
        for id, own in zip(ids, clusters, strict=True)
    ]


def model_names(files: Sequence[str]) -> list[str]:
    """Return a unique name for each file: its name without endings such as ``.jsonl.gz`` or, if two
    names are equal, its path.

    >>> model_names(["out/gpt-4.1.jsonl", "b.jsonl.gz"]), model_names(["x/a.jsonl", "y/a.jsonl"])
    (['gpt-4.1', 'b'], ['x/a.jsonl', 'y/a.jsonl'])
    """
    stems = [_ENDING.sub("", Path(file).name) or file for file in files]
    return stems if len(set(stems)) == len(stems) else list(files)
