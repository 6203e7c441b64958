"""Targets and answer starts: from code points of a text to its numbers and tokens."""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from numtok.codec import Spans, Texts
from numtok.records import Row


@dataclass
class Targets:
    """The targets and answer starts of ``n`` rows."""

    counts: NDArray[np.int32]  # [n] targets of each row
    index: list[int] = field(default_factory=list)  # [targets] among the numbers of the row
    names: list[str] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)  # [targets] among the numbers of the batch
    answers: NDArray[np.int32] | None = None  # [n] byte offset in the texts, -1 if none
    problems: dict[int, str] = field(default_factory=dict)  # by row


def resolve(rows: list[Row], texts: Texts, spans: Spans) -> Targets:
    """Find every target among the numbers, and where each answer starts.

    A span that is not exactly one number, or an answer that starts within one, is a problem of
    its row; what is given back for such rows means nothing.
    """
    targets = Targets(np.zeros(len(rows), np.int32))
    wanted = [n for n, row in enumerate(rows) if row.targets or row.answer_start is not None]
    if not wanted:
        return targets
    starts, ends = spans.starts.tolist(), spans.ends.tolist()
    first_number = np.cumsum(spans.counts) - spans.counts
    answers = np.full(len(rows), -1, np.int32)
    for n in wanted:
        row, begin, end = rows[n], int(texts.rows[n]), int(texts.rows[n + 1])
        places = _Places(texts.data[begin:end].tobytes(), begin)
        first, last = int(first_number[n]), int(first_number[n] + spans.counts[n])
        try:
            for name, found in (row.targets or {}).items():
                for span in found:
                    what = f"target {name!r} at {list(span)}"
                    start, stop = places.byte(span[0], what), places.byte(span[1], what)
                    at = bisect_left(starts, start, first, last)
                    if at == last or (starts[at], ends[at]) != (start, stop):
                        read = places.shown(start, stop)
                        raise ValueError(
                            f"{what} is {read}, not exactly one number; "
                            "give the span of a number as `numtok explain` reads it"
                        )
                    targets.index.append(at - first)
                    targets.names.append(name)
                    targets.spans.append(at)
                    targets.counts[n] += 1
            if row.answer_start is not None:
                answer = places.byte(row.answer_start, f"answer_start {row.answer_start}")
                at = bisect_left(ends, answer + 1, first, last)
                if at < last and starts[at] < answer < ends[at]:
                    raise ValueError(
                        f"answer_start {row.answer_start} lies within the number "
                        f"{places.shown(starts[at], ends[at])}; give where the number begins"
                    )
                answers[n] = answer
        except ValueError as error:
            targets.problems[n] = str(error)
    if any(rows[n].answer_start is not None for n in wanted):
        targets.answers = answers
    return targets


class _Places:
    """Code points of one text as byte offsets in the column."""

    def __init__(self, text: bytes, begin: int) -> None:
        self._text, self._begin = text, begin
        self._decoded = None if text.isascii() else text.decode()

    def byte(self, place: int, what: str) -> int:
        """ValueError for a place outside the text."""
        length = len(self._text if self._decoded is None else self._decoded)
        if not 0 <= place <= length:
            raise ValueError(
                f"{what} is outside the text, which has {length} characters (code points)"
            )
        if self._decoded is None:
            return self._begin + place
        return self._begin + len(self._decoded[:place].encode())

    def shown(self, start: int, end: int) -> str:
        """What stands between two byte offsets, shortened for a message."""
        text = self._text[start - self._begin : end - self._begin].decode()
        return repr(text if len(text) <= 40 else text[:37] + "...")
