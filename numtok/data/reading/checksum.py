"""Detection of changed files: by size and modification time, or by a very fast checksum.

The checksum consists of two sums over eight-byte words, modulo 2^64: the sum of the words, and the
sum of each word times its index. It detects overwritten files but, unlike sha256, does not protect
against deliberate manipulation.
"""

from typing import NamedTuple

import numpy as np

from numtok.errors import DataError
from numtok.kernel_types import pair, reads, uint8, uint64
from numtok.kernels import byte_at, inlined, kernel, word_at


class Stamp(NamedTuple):
    """Size and modification time of a file. If its stamp differs, the file has changed."""

    size: int
    modified: int | str  # nanoseconds; for objects the entity tag or a substitute


def changed(shown: str) -> DataError:
    """Return the error for a file that changed since the work was planned."""
    return DataError(
        f"{shown} changed while it was read. Run the command again when no process writes to it"
    )


class Checksum(NamedTuple):
    """Checksum of ``size`` bytes: two sums over their eight-byte words."""

    size: int = 0
    total: int = 0
    weighted: int = 0

    def over(self, data: bytes | memoryview) -> "Checksum":
        """Return the checksum extended by ``data``.

        The result does not depend on how the bytes are divided between calls.

        >>> Checksum().over(b"ab").over(b"c") == Checksum().over(b"abc")
        True
        """
        sums = _sums(np.frombuffer(data, np.uint8), *map(np.uint64, self))
        return Checksum(self.size + len(data), *map(int, sums))


@inlined
def _bytewise(data, begin, end, offset, total, weighted):  # type: ignore[no-untyped-def]
    """Add bytes one by one to the sums, for words that are incomplete."""
    for i in range(begin, end):
        eighth = (offset & np.uint64(7)) << np.uint64(3)
        part = np.uint64(byte_at(data, i)) << eighth
        offset += np.uint64(1)
        total += part
        weighted += part * ((offset + np.uint64(7)) >> np.uint64(3))
    return offset, total, weighted


@kernel(pair(uint64)(reads(uint8), uint64, uint64, uint64))
def _sums(data, offset, total, weighted):  # type: ignore[no-untyped-def]
    head = min(np.int64(len(data)), np.int64(-offset & np.uint64(7)))
    words = (len(data) - head) >> 3
    offset, total, weighted = _bytewise(data, 0, head, offset, total, weighted)
    first = (offset >> np.uint64(3)) + np.uint64(1)
    for k in range(words):
        word = word_at(data, head + 8 * k)
        total += word
        weighted += word * (first + np.uint64(k))
    offset += np.uint64(8 * words)
    tail = head + 8 * words
    _, total, weighted = _bytewise(data, tail, len(data), offset, total, weighted)
    return total, weighted
