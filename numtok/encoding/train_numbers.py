"""train_numbers: moments and samples of the numbers in the train split.

Workers compute both for each unit of work. Normalizers and schemes are then fitted to the merged
results.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.arrays import UInt64s
from numtok.data.reading.arrow import slices
from numtok.data.reading.rows import Categories, RowColumns
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.channel import normalized
from numtok.encoding.normalizers.base import FittedNormalizer, Moments
from numtok.encoding.number_sample import Sample, joined, no_sample, smallest
from numtok.encoding.row_keys import ANYTHING, LONGEST, number_keys, row_codes
from numtok.encoding.row_numbers import numbers_in
from numtok.encoding.targets import answers_of
from numtok.encoding.text_tokenizers.base import FittedTokenizer
from numtok.encoding.texts import Texts
from numtok.encoding.unit import Screening
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy

KEPT = 1 << 19  # numbers


class NumberSample:
    """Uniform sample of numbers as written: all numbers, or the 524,288 with the smallest hashes if
    there are more (see :mod:`numtok.encoding.number_sample`).

    The sample depends neither on how the data is divided into parts nor on the order of the parts.
    Numbers of more than 1,024 bytes are counted, but never sampled.
    """

    def __init__(self) -> None:
        self.count = 0  # all numbers, sampled or not
        self._settled = no_sample()
        self._waiting: list[Sample] = []

    def add(self, hashes: UInt64s, literals: Literals) -> None:
        """Add n numbers as written, with their hashes from
        :func:`numtok.encoding.row_keys.number_keys`, uint64[n]."""
        self.count += len(hashes)
        short = literals.ends - literals.starts <= LONGEST
        keep = np.flatnonzero(short & (hashes <= self._limit))
        every = Sample(np.zeros(len(hashes), np.int32), hashes, np.ones(len(hashes), int), literals)
        self._waiting.append(every.take(keep))
        if sum(map(len, self._waiting)) > KEPT // 4:
            self.settle()

    def merge(self, other: "NumberSample") -> None:
        """Add the sample of another part of the data to this one."""
        self.count += other.count
        other.settle()
        theirs = other._settled  # sorted by hash
        below = int(np.searchsorted(theirs.hashes, self._limit, side="right"))
        self._waiting.append(theirs.take(np.arange(below)))
        self.settle()

    @property
    def _limit(self) -> np.uint64:
        """Largest hash that can still enter the sample."""
        return self._settled.hashes[-1] if len(self._settled) == KEPT else ANYTHING

    def settle(self) -> None:
        """Merge the added numbers into the sample to free memory."""
        self._settled = smallest(joined([self._settled, *self._waiting]), KEPT)
        self._waiting = []

    @property
    def sampled(self) -> int:
        """Number of sampled numbers. Equal numbers in identical rows are stored once, but all of
        them are counted."""
        self.settle()
        return int(self._settled.weights.sum())

    def literals(self) -> dict[str, int]:
        """Return the number of times that each literal occurs in the sample."""
        self.settle()
        coded = slices(*self._settled.literals).dictionary_encode()
        codes = coded.indices.to_numpy()
        counts = np.bincount(codes, self._settled.weights, len(coded.dictionary))
        return dict(zip(coded.dictionary.to_pylist(), map(int, counts), strict=True))


@dataclass(frozen=True)
class MeasureUnit:
    """Callable that workers run on each unit of work. A call returns the index of the unit, the
    moments of its numbers in the train split, and its number of rows across all splits.

    If ``by_answer``, there are two moments: those of numbers outside of answers and within."""

    screening: Screening
    policy: NumeralPolicy
    text: FittedTokenizer
    by_answer: bool

    def __call__(self, unit: Unit) -> tuple[int, tuple[Moments, ...], int]:
        moments, rows = [Moments()] * (1 + self.by_answer), 0
        for batch in _numbers(unit, self.screening, self.policy, self.text):
            values, in_answer = batch.numerals.values, batch.numerals.in_answer
            assert in_answer is not None
            parts = [values[~in_answer], values[in_answer]] if self.by_answer else [values]
            moments = [
                each.merged(Moments.of(part)) for each, part in zip(moments, parts, strict=True)
            ]
            rows += batch.rows
        return unit.index, tuple(moments), rows


@dataclass(frozen=True)
class SampleUnit:
    """Callable that workers run on each unit of work. A call returns the index of the unit, a
    sample of its normalized numbers in the train split, and its number of rows across all
    splits."""

    screening: Screening
    policy: NumeralPolicy
    text: FittedTokenizer
    normalizer: FittedNormalizer

    def __call__(self, unit: Unit) -> tuple[int, NumberSample, int]:
        sample, rows = NumberSample(), 0
        for batch in _numbers(unit, self.screening, self.policy, self.text):
            codes = row_codes(batch.ids, batch.texts, batch.spans, batch.numerals)
            hashes = number_keys(codes, batch.spans)
            sample.add(hashes, normalized(batch.numerals, self.normalizer).literals)
            rows += batch.rows
        sample.settle()
        return unit.index, sample, rows


class _TrainRows(NamedTuple):
    """Rows of the train split with their numbers; ``rows`` counts the rows of all splits."""

    ids: Texts
    texts: Texts
    spans: Spans
    numerals: Numerals
    rows: int


def _numbers(
    unit: Unit, screening: Screening, policy: NumeralPolicy, text: FittedTokenizer
) -> Iterator[_TrainRows]:
    """Yield the train rows of a unit with their numbers, in batches."""
    for batch, splits in screening.accepted(unit, policy, text.unwritable):
        rows = in_train(batch.rows, splits)
        texts, spans = numbers_in(rows, policy)
        in_answer = spans.in_answers(answers_of(rows, texts, spans))
        numerals = spans.numerals().of_texts(in_answer)
        yield _TrainRows(Texts.of(rows.ids), texts, spans, numerals, len(batch))


def in_train(rows: RowColumns, splits: Categories) -> RowColumns:
    """Return the rows that are in the train split. ``splits`` contains the split of each row."""
    keep = dict(splits.places()).get(TRAIN, np.empty(0, np.int64))
    return rows if len(keep) == len(rows) else rows.take(keep)
