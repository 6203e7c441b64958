"""targets: finds the numbers that targets refer to, and the bytes at which answers start.

Targets and answer starts are given as character offsets in a text.
"""

from typing import NamedTuple

import numpy as np

from numtok.arrays import Int32s, Ints
from numtok.data.reading.rows import NO_ANSWER, NO_TARGETS, Categories, RowColumns, Targets, outside
from numtok.data.reading.values import byte_places
from numtok.encoding.texts import Texts
from numtok.numerals.find import Spans
from numtok.numerals.proposals import policy_for

_SHOWN = 40  # characters of a text in a message


class ResolvedTargets(NamedTuple):
    """Targets and answer starts of ``n`` rows, resolved to indices of numbers and byte offsets.
    There are ``k`` targets in total."""

    counts: Int32s  # [n] targets of each row
    numbers: Int32s  # [k] index among the numbers of the row
    names: Categories  # [k]
    spans: Ints  # [k] index among the numbers of all rows
    answers: Int32s | None  # [n] byte offset in the texts, -1 if none
    problems: dict[int, str]  # messages by row


def resolve(rows: RowColumns, texts: Texts, spans: Spans) -> ResolvedTargets:
    """Find the number that each target refers to, and the byte offset at which each answer starts.

    If the span of a target is not exactly one number, or an answer starts inside a number, the row
    gets an entry in ``problems``. The other results for such a row are undefined.
    """
    targets = rows.targets or NO_TARGETS
    problems: dict[int, str] = {}
    at = _numbers_of(targets, texts, spans, problems)
    answers = answers_of(rows, texts, spans, problems)
    first_number = np.cumsum(spans.counts) - spans.counts
    return ResolvedTargets(
        counts=np.bincount(targets.rows, minlength=len(rows)).astype(np.int32),
        numbers=(at - first_number[targets.rows]).astype(np.int32),
        names=targets.names,
        spans=at,
        answers=answers,
        problems=problems,
    )


def _numbers_of(targets: Targets, texts: Texts, spans: Spans, problems: dict[int, str]) -> Ints:
    """Return the index of the number of each target, int64[k]."""
    starts = byte_places(*texts, targets.rows, targets.starts)
    ends = byte_places(*texts, targets.rows, targets.ends)
    at = np.searchsorted(spans.starts, starts)
    # Targets after the last number, and invalid offsets (-1), match no number.
    exact = (_at(spans.starts, at) == starts) & (_at(spans.ends, at) == ends) & (starts >= 0)
    for target in np.flatnonzero(~exact).tolist():
        row, start, end = int(targets.rows[target]), int(starts[target]), int(ends[target])
        span = [int(targets.starts[target]), int(targets.ends[target])]
        what = f"target {targets.names.at(target)!r} {span}"
        problem = (
            _outside(what, texts, row)
            if min(start, end) < 0
            else f"{what} covers {_shown(texts, start, end)}; it must cover exactly one number "
            f"(end exclusive). {_remedy(texts.data[start:end].tobytes().decode())}"
        )
        problems.setdefault(row, problem)
    return at


def answers_of(
    rows: RowColumns, texts: Texts, spans: Spans, problems: dict[int, str] | None = None
) -> Int32s | None:
    """Return the byte offset of each answer, int32[n], -1 if none; None if no row has an answer.

    Rows whose answer starts outside the text or inside a number get an entry in ``problems``.
    """
    if rows.answer_starts is None:
        return None
    return _answers(rows.answer_starts, texts, spans, {} if problems is None else problems)


def _answers(answer_starts: Ints, texts: Texts, spans: Spans, problems: dict[int, str]) -> Int32s:
    """Return the byte offset of each answer, int32[n]; -1 if none."""
    rows = np.flatnonzero(answer_starts != NO_ANSWER).astype(np.int32)
    starts = byte_places(*texts, rows, answer_starts[rows])
    at = np.searchsorted(spans.ends, starts, side="right")
    within = (_at(spans.starts, at) < starts) & (at < len(spans.starts))
    for index in np.flatnonzero((starts < 0) | within).tolist():
        row, number = int(rows[index]), int(at[index])
        what = f"answer_start {answer_starts[row]}"
        problem = (
            _outside(what, texts, row)
            if starts[index] < 0
            else f"{what} is inside the number "
            f"{_shown(texts, int(spans.starts[number]), int(spans.ends[number]))}. "
            "Set it to the start of the number"
        )
        problems.setdefault(row, problem)
    answers = np.full(len(answer_starts), -1, np.int32)
    answers[rows] = starts
    return answers


def _at(values: Int32s, at: Ints) -> Int32s:
    """Return ``values[at]``, [k], with -1 for indices past the end."""
    return np.append(values, np.int32(-1))[at]


def _outside(what: str, texts: Texts, row: int) -> str:
    return outside(what, texts.data[texts.rows[row] : texts.rows[row + 1]].tobytes().decode())


def _remedy(text: str) -> str:
    """Return advice for a span that is not exactly one number."""
    if (policy := policy_for(text)) is not None:
        return f"To read it as one: --numbers {policy.spec()}"
    return "Use the span of a number as `numtok explain` reads it"


def _shown(texts: Texts, start: int, end: int) -> str:
    """Return the text between two byte offsets, shortened for a message."""
    text = texts.data[start:end].tobytes().decode()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
