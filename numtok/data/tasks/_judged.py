"""Rows of texts that are right or wrong: how many of each kind, and the lines that they become."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from numtok.data.tasks._unrepeated import Whole, in_random_order, shared_out
from numtok.data.tasks.base import Made, TaskSplit, TextTask
from numtok.errors import UsageError
from numtok.registry import spec_of

LABELS = np.array(["incorrect", "correct"])


class JudgedRow(msgspec.Struct, omit_defaults=True):
    """A row as ``records.Row`` has it."""

    id: str
    text: str
    targets: dict[str, list[tuple[int, int]]] | None = None
    answer_start: int | None = None
    label: str | None = None
    group: dict[str, str] | None = None


def pairs_of_kinds(task: TextTask, possible: Sequence[int], split: TaskSplit) -> Whole:
    """The kind of each pair of rows [rows / 2, rounded up], kinds as equally often as they can.

    ``possible`` is how many pairs of each kind there are in all splits. Raises UsageError where a
    split has too few.
    """
    counts = shared_out(-(-split.rows // 2), possible, split)
    if counts is None:
        raise too_few(task, split)
    return np.repeat(np.arange(len(counts)), counts)


def too_few(task: TextTask, split: TaskSplit) -> UsageError:
    """The error of a split that asks for more rows than can be drawn."""
    return UsageError(
        f"{spec_of(task)} has {task.possible or 0:,} different rows, of which some three quarters "
        f"can be drawn: too few for {split.rows:,} in the split {split.name!r}, with "
        f"{split.share:.3g} of them; give fewer --samples, or wider ranges"
    )


def shuffled(purpose: str, rows: int, columns: Sequence[Whole]) -> list[Whole]:
    """Columns of pairs of rows, one after the other, in random order; of the last pair one row is
    left out where that is one too many, either."""
    order = in_random_order(purpose, len(columns[0]))
    if len(order) > rows:
        last = len(order) - 1 - int(in_random_order(f"odd {purpose}", 2)[0])
        order = order[order != last]
    return [column[order] for column in columns]


def judged(
    split: TaskSplit,
    first: int,
    texts: Iterable[str],
    labels: Whole,
    groups: Sequence[dict[str, str]],
    which: Whole,
) -> Made:
    """A unit of rows, the first of which is number ``first`` of its split.

    labels, which
        int64[rows]: places in :data:`LABELS` and, of the kind of each row, in ``groups``.
    """
    rows = zip(texts, LABELS[labels].tolist(), which.tolist(), strict=True)
    return Made(
        json_lines(
            JudgedRow(f"{split.name}-{number}", text, label=label, group=groups[kind])
            for number, (text, label, kind) in enumerate(rows, first)
        ),
        {},
    )


def json_lines(lines: Iterable[JudgedRow]) -> bytes:
    """Lines as JSONL."""
    return msgspec.json.Encoder().encode_lines(list(lines))
