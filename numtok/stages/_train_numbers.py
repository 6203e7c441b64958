"""The numbers of the train split, unit by unit: what a normaliser and a scheme are fitted on."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.codec import Texts, normalized
from numtok.normalizers.base import FittedNormalizer, Moments
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.records import TRAIN
from numtok.stages._arrow import column, slices
from numtok.stages._batches import Batch
from numtok.stages._encode_unit import Screening
from numtok.stages._inputs import Unit
from numtok.stages._rows import Categories

KEPT = 1 << 17  # distinct literals


class LiteralCounts:
    """Distinct literals with how often each comes: all, or the 131,072 with the smallest hashes.

    Whatever literal is among the smallest in the whole was among them in every part, so its count
    is complete, and the result depends neither on the division nor on the order of the parts.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, literals: Literals) -> None:
        """Count some numbers as written."""
        found = pc.value_counts(slices(*literals))
        names, counts = (found.field(name).to_pylist() for name in ("values", "counts"))
        self._add(dict(zip(names, counts, strict=True)))

    def merge(self, other: "LiteralCounts") -> None:
        """Add what another part has."""
        self._add(other._counts)

    def _add(self, counts: Mapping[str, int]) -> None:
        self._counts.update(counts)
        if len(self._counts) > 2 * KEPT:
            self._counts = Counter(self.smallest())

    def smallest(self) -> dict[str, int]:
        """The counts, of no more literals than are kept."""
        kept = self._counts if len(self._counts) <= KEPT else sorted(self._counts, key=_hash)[:KEPT]
        return {literal: self._counts[literal] for literal in kept}


def _hash(literal: str) -> bytes:
    return blake2b(literal.encode(), digest_size=8).digest()


@dataclass(frozen=True)
class MeasureUnit:
    """Called with a unit, in any process: its index, the moments of its train numbers, its rows."""

    screening: Screening
    policy: NumeralPolicy

    def __call__(self, unit: Unit) -> tuple[int, Moments, int]:
        moments, rows = Moments(), 0
        for numerals, count in _numerals(unit, self.screening, self.policy):
            moments = moments.merged(Moments.of(numerals.values))
            rows += count
        return unit.index, moments, rows


@dataclass(frozen=True)
class CountUnit:
    """Called with a unit, in any process: its index, the literals of its train numbers as a scheme
    is given them, its rows."""

    screening: Screening
    policy: NumeralPolicy
    normalizer: FittedNormalizer

    def __call__(self, unit: Unit) -> tuple[int, LiteralCounts, int]:
        counts, rows = LiteralCounts(), 0
        for numerals, count in _numerals(unit, self.screening, self.policy):
            counts.add(normalized(numerals, self.normalizer).literals)
            rows += count
        return unit.index, counts, rows


def _numerals(
    unit: Unit, screening: Screening, policy: NumeralPolicy
) -> Iterator[tuple[Numerals, int]]:
    """The train numbers of some rows at a time, and how many rows of all splits these are."""
    for batch, splits in screening.batches(unit):
        texts = Texts.of(train_texts(batch, splits))
        starts, ends, _ = scan(texts.data, texts.rows, policy)
        yield Numerals.read(Literals(texts.data, starts, ends)), len(batch)


def train_texts(batch: Batch, splits: Categories) -> "pa.Array[Any]":
    """The texts of the rows that are in the train split."""
    keep = dict(splits.places()).get(TRAIN, np.empty(0, np.int64))
    return batch.rows.texts if len(keep) == len(batch) else batch.rows.texts.take(column(keep))
