"""The numbers of the train split, unit by unit: what a normaliser and a scheme are fitted on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numtok.arrays import UInt64s
from numtok.data.reading.arrow import column, slices
from numtok.data.reading.rows import Categories
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.channel import normalized
from numtok.encoding.normalizers.base import FittedNormalizer, Moments
from numtok.encoding.number_sample import Sample, joined, no_sample, smallest
from numtok.encoding.row_keys import ANYTHING, LONGEST, number_keys, row_codes
from numtok.encoding.texts import Spans, Texts
from numtok.encoding.unit import Screening
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.policy import NumeralPolicy

KEPT = 1 << 19  # numbers


class NumberSample:
    """Some numbers as written, each as likely to be among them as any other: all, or the 524,288
    with the smallest hashes (``number_sample``). They depend neither on the division nor on the
    order of the parts. A number of many bytes is counted, but never among them.
    """

    def __init__(self) -> None:
        self.count = 0  # of all numbers
        self._settled = no_sample()
        self._waiting: list[Sample] = []

    def add(self, hashes: UInt64s, literals: Literals) -> None:
        """Numbers as written, and uint64[n], their hashes by
        :func:`numtok.encoding.row_keys.number_keys`."""
        self.count += len(hashes)
        short = literals.ends - literals.starts <= LONGEST
        keep = np.flatnonzero(short & (hashes <= self._limit))
        every = Sample(np.zeros(len(hashes), np.int32), hashes, np.ones(len(hashes), int), literals)
        self._waiting.append(every.take(keep))
        if sum(map(len, self._waiting)) > KEPT // 4:
            self.settle()

    def merge(self, other: "NumberSample") -> None:
        """Add what another part has."""
        self.count += other.count
        other.settle()
        theirs = other._settled  # in the order of their hashes
        below = int(np.searchsorted(theirs.hashes, self._limit, side="right"))
        self._waiting.append(theirs.take(np.arange(below)))
        self.settle()

    @property
    def _limit(self) -> np.uint64:
        """The largest hash that is not too large."""
        return self._settled.hashes[-1] if len(self._settled) == KEPT else ANYTHING

    def settle(self) -> None:
        """Sort in what has come, so that it takes less memory."""
        self._settled = smallest(joined([self._settled, *self._waiting]), KEPT)
        self._waiting = []

    @property
    def sampled(self) -> int:
        """How many numbers are those of the sample."""
        self.settle()
        return int(self._settled.weights.sum())

    def literals(self) -> dict[str, int]:
        """How often each literal is among them."""
        self.settle()
        coded = slices(*self._settled.literals).dictionary_encode()
        codes = coded.indices.to_numpy()
        counts = np.bincount(codes, self._settled.weights, len(coded.dictionary))
        return dict(zip(coded.dictionary.to_pylist(), map(int, counts), strict=True))


@dataclass(frozen=True)
class MeasureUnit:
    """Called with a unit, in any process: its index, the moments of its train numbers, its rows."""

    screening: Screening
    policy: NumeralPolicy

    def __call__(self, unit: Unit) -> tuple[int, Moments, int]:
        moments, rows = Moments(), 0
        for found in _numbers(unit, self.screening, self.policy):
            moments = moments.merged(Moments.of(found.numerals.values))
            rows += found.rows
        return unit.index, moments, rows


@dataclass(frozen=True)
class SampleUnit:
    """Called with a unit, in any process: its index, a sample of its train numbers as a scheme is
    given them, its rows."""

    screening: Screening
    policy: NumeralPolicy
    normalizer: FittedNormalizer

    def __call__(self, unit: Unit) -> tuple[int, NumberSample, int]:
        sample, rows = NumberSample(), 0
        for found in _numbers(unit, self.screening, self.policy):
            codes = row_codes(found.ids, found.texts, found.spans, found.numerals)
            hashes = number_keys(codes, found.spans)
            sample.add(hashes, normalized(found.numerals, self.normalizer).literals)
            rows += found.rows
        sample.settle()
        return unit.index, sample, rows


class _TrainRows(NamedTuple):
    """Rows of the train split with their numbers, of so many rows of all splits."""

    ids: Texts
    texts: Texts
    spans: Spans
    numerals: Numerals
    rows: int


def _numbers(unit: Unit, screening: Screening, policy: NumeralPolicy) -> Iterator[_TrainRows]:
    """The train numbers of some rows at a time."""
    for batch, splits in screening.batches(unit):
        ids, texts = (
            Texts.of(in_train(each, splits)) for each in (batch.rows.ids, batch.rows.texts)
        )
        spans = texts.find(policy)
        numerals = texts.numerals(spans)
        yield _TrainRows(ids, texts, spans, numerals, len(batch))


def in_train(rows: "pa.Array[Any]", splits: Categories) -> "pa.Array[Any]":
    """Of a column of some rows, those in the train split."""
    keep = dict(splits.places()).get(TRAIN, np.empty(0, np.int64))
    return rows if len(keep) == len(rows) else rows.take(column(keep))
