"""Finds the numbers in a column of texts under a numeral policy."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numtok.arrays import Bools, Int32s, UInt8s
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.zones import outside_zones

if TYPE_CHECKING:
    from numtok.numerals.notations.passages import Passages


class Offsets(NamedTuple):
    """Byte offsets of the numbers in ``n`` texts, in order; what kernels take."""

    starts: Int32s  # [numbers]
    ends: Int32s  # [numbers]
    counts: Int32s  # [n] numbers in each text


class Spans(NamedTuple):
    """Numbers in ``n`` texts, in order. Offsets are in bytes, within the data of the texts."""

    starts: Int32s  # [numbers]
    ends: Int32s  # [numbers]
    counts: Int32s  # [n] numbers in each text
    #: The numbers in the notation of the scanner: the texts themselves, unless the policy has
    #: further notations.
    literals: Literals

    @property
    def offsets(self) -> Offsets:
        """Offsets without the literals."""
        return Offsets(self.starts, self.ends, self.counts)

    def numerals(self) -> Numerals:
        """Return the values and digits of the numbers."""
        return Numerals.read(self.literals)

    def in_answers(self, answers: Int32s | None) -> Bools:
        """Return whether each number begins at or after the answer of its text, bool[numbers].

        answers
            int32[n], byte offset of the answer of each text, -1 if none; None if no text has one.
        """
        if answers is None:
            return np.zeros(len(self.starts), np.bool_)
        begin = np.repeat(answers, self.counts)
        return (begin >= 0) & (self.starts >= begin)

    def first(self, rows: int) -> "Spans":
        """Return the numbers in the first ``rows`` texts."""
        numbers = int(self.counts[:rows].sum())
        some = slice(numbers)
        return Spans(
            self.starts[some], self.ends[some], self.counts[:rows], self.literals.take(some)
        )

    def merged(self, others: "Spans") -> "Spans":
        """Return these numbers and others of the same texts, in the order of the texts."""
        from numtok.numerals.notations.literals import joined

        starts = np.concatenate([self.starts, others.starts])
        order = np.argsort(starts, kind="stable")  # linear time for two sorted sequences
        ends = np.concatenate([self.ends, others.ends])
        literals = joined(self.literals, others.literals, order)
        return Spans(starts[order], ends[order], self.counts + others.counts, literals)

    def take(self, keep: Bools) -> "Spans":
        """Return the numbers for which ``keep`` (bool[numbers]) is True."""
        owners = np.repeat(np.arange(len(self.counts)), self.counts)
        counts = np.bincount(owners[keep], minlength=len(self.counts)).astype(np.int32)
        return Spans(self.starts[keep], self.ends[keep], counts, self.literals.take(keep))


def find(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> Spans:
    """Return the numbers in a column of texts.

    data
        uint8[bytes]: the texts, concatenated without separators, in valid UTF-8.
    rows
        int32[n + 1]: text r is ``data[rows[r]:rows[r + 1]]``.

    >>> text = np.frombuffer(b"1'234.5 and 2.5k", np.uint8)
    >>> policy = NumeralPolicy.parse("suffixes,groups=apostrophe")
    >>> spans = find(text, np.array([0, 16], np.int32), policy)
    >>> spans.starts.tolist(), spans.ends.tolist(), [spans.literals.at(k) for k in range(2)]
    ([0, 12], [7, 16], ['1234.5', '2.5e+3'])
    """
    spans = _found(data, rows, policy)
    if policy.not_numbers:
        return spans.take(outside_zones(data, rows, *spans.offsets, policy.not_numbers))
    return spans


def _found(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> Spans:
    """Return the numbers in a column of texts, also those in zones."""
    from numtok.numerals.scan import scan  # late: decoding needs no kernels

    if policy.decimal == "comma":
        from numtok.numerals.notations.characters import exchanged

        data = exchanged(data)
    if not policy.has_passages:
        starts, ends, counts = scan(data, rows, policy)
        return Spans(starts, ends, counts, Literals(data, starts, ends))
    from numtok.numerals.notations.passages import separate

    (starts, ends, counts), passages = separate(data, rows, policy)
    spans = Spans(starts, ends, counts, Literals(data, starts, ends))
    if not len(passages.starts):
        return spans
    others = _in_passages(passages, len(rows) - 1, policy)
    return spans.merged(others) if len(starts) else others


def _in_passages(passages: "Passages", count: int, policy: NumeralPolicy) -> Spans:
    """Return the numbers in passages of ``count`` texts. Offsets are within the data of the
    texts."""
    from numtok.numerals.notations.characters import rewrite_characters
    from numtok.numerals.notations.numbers import rewrite_numbers
    from numtok.numerals.scan import scan

    steps = []
    data, bounds = passages.data, passages.rows
    for rewrite in (rewrite_characters, rewrite_numbers):
        steps.append(rewrite(data, bounds, policy))
        data, bounds = steps[-1].data, steps[-1].rows
    starts, ends, counts = scan(data, bounds, policy)
    literals = Literals(data, starts, ends)
    for step in reversed(steps):
        starts, ends = step.original(starts, ends)
    moves = np.repeat(passages.starts - passages.rows[:-1], counts)
    owners = np.repeat(passages.texts, counts)
    of_texts = np.bincount(owners, minlength=count).astype(np.int32)
    return Spans(starts + moves, ends + moves, of_texts, literals)
