"""row_twins: finds rows with a twin in the train split, that is, a row that is equal except for
case, spaces and target numbers.

Rows are compared by 63-bit hashes. If the data is large, only rows with small hashes are compared.
The choice of these rows does not depend on how the data is divided into parts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from numtok.arrays import UInt64s
from numtok.data.reading.rows import Categories
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.row_keys import hash_word
from numtok.encoding.targets import ResolvedTargets
from numtok.encoding.texts import Texts
from numtok.kernel_types import int32, int64, reads, uint8, uint64, void, writes
from numtok.kernels import byte_at, inlined, kernel, word_at
from numtok.numerals.find import Spans

TWINS = "twins_"  # prefix of counts in the manifest, followed by the split
MOST = 1 << 17  # hashes kept for all splits together
_ANY_HASH = (1 << 63) - 1

_U = np.uint64
_FACTOR = _U(0x9E3779B97F4A7C15)
_TARGET = np.uint8(0xFF)  # stands for the number of a target; no byte of UTF-8
_SPACE = np.uint8(32)
_FOLDED = np.arange(256, dtype=np.uint8)  # bytes in lower case, with ASCII white space as a space
_FOLDED[65:91] += 32
_FOLDED[9:14] = _SPACE


@inlined
def _hash(data, size):  # type: ignore[no-untyped-def]
    """Hash the first ``size`` bytes, after which eight zeros follow."""
    code = _U(size)
    for i in range(0, size, 8):
        code = (code ^ word_at(data, i)) * _FACTOR
        code ^= code >> _U(32)
    return code


@kernel(
    void(
        reads(uint8), reads(int32), reads(int32), reads(int32), reads(int64),
        writes(uint8), writes(uint64),
    )
)  # fmt: skip
def _hash_rows(data, rows, starts, ends, targets, folded, hashes):  # type: ignore[no-untyped-def]
    """Hash each row without its targets. ``targets`` are ascending indices of spans, and ``folded``
    has room for the longest row and eight bytes more."""
    t = 0
    for r in range(len(hashes)):
        size = np.int64(0)
        last = _SPACE  # the last byte: no space follows a space
        i, end = np.int64(rows[r]), np.int64(rows[r + 1])
        while True:
            some = t < len(targets) and starts[targets[t]] < end
            stop = np.int64(starts[targets[t]]) if some else end
            while i < stop:
                c = _FOLDED[byte_at(data, i)]
                folded[_U(size)] = c
                # Without branches, because the lengths of words cannot be predicted.
                size += c != _SPACE or last != _SPACE
                last = c
                i += 1
            if not some:
                break
            folded[size] = last = _TARGET
            size += 1
            i = np.int64(ends[targets[t]])
            t += 1
        size -= size > 0 and last == _SPACE
        for k in range(8):
            folded[size + k] = 0
        hashes[r] = hash_word(_hash(folded, size)) >> _U(1)


def row_hashes(texts: Texts, spans: Spans, targets: ResolvedTargets) -> UInt64s:
    """Return a hash of each row, uint64[n]. Rows that are equal except for case, spaces and target
    numbers have equal hashes."""
    hashes = np.empty(len(spans.counts), np.uint64)
    folded = np.empty(np.diff(texts.rows).max(initial=0) + 8, np.uint8)
    ordered = np.sort(targets.spans)
    chosen = ordered[np.diff(ordered, prepend=-1) > 0]  # np.unique would import numpy.ma
    _hash_rows(texts.data, texts.rows, spans.starts, spans.ends, chosen, folded, hashes)
    return hashes


@dataclass
class RowTwins:
    """Row hashes per split, for counting twins. The hashes from several parts of a data set can be
    merged."""

    limit: int = _ANY_HASH  # largest hash that is kept
    splits: dict[str, UInt64s] = field(default_factory=dict)

    def add(self, hashes: UInt64s, splits: Categories) -> None:
        """Add rows, given as hashes, uint64[n], with their splits."""
        self.merge([RowTwins(splits={name: hashes[rows] for name, rows in splits.places()})])

    def merge(self, twins: Iterable["RowTwins"]) -> None:
        """Add the rows of other parts of the data set."""
        parts = [self, *twins]
        self.limit = min(part.limit for part in parts)
        names = sorted({name for part in parts for name in part.splits})
        nothing = np.empty(0, np.uint64)
        self.splits = {
            name: np.concatenate([part.splits.get(name, nothing) for part in parts])
            for name in names
        }
        self._keep()
        while sum(map(len, self.splits.values())) > MOST:
            self.limit //= 2
            self._keep()

    def _keep(self) -> None:
        if self.limit < _ANY_HASH:
            limit = np.uint64(self.limit)
            self.splits = {name: kept[kept <= limit] for name, kept in self.splits.items()}

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each split, the number of rows that have a twin in the train split and the
        number of compared rows. The train split and splits without twins are omitted."""
        train = self.splits.get(TRAIN, np.empty(0, np.uint64))
        counts = {
            name: (int(np.isin(hashes, train).sum()), len(hashes))
            for name, hashes in sorted(self.splits.items())
            if name != TRAIN
        }
        return {name: (twins, rows) for name, (twins, rows) in counts.items() if twins}

    def notes(self, rows: Mapping[str, int]) -> list[str]:
        """Return a warning for each split with twins. ``rows`` maps each split to its total number
        of rows."""
        return [
            twins_note(name, round(twins / compared * rows[name]), rows[name])
            for name, (twins, compared) in self.counts().items()
        ]


def twins_note(split: str, twins: int, rows: int) -> str:
    """Return a message that says how many rows of a split have a twin in the train split, and what
    to do about them."""
    return (
        f"{twins:,} of {rows:,} {split} rows have a twin in {TRAIN} (equal up to case, spaces and "
        "target numbers). Remove them, or give twins the same cluster (in a CSV: the same split)"
    )
