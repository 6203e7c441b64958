"""Checks that a file has not changed: stamps, and a checksum at the speed of memory.

The checksum is two sums over words of eight bytes, modulo 2^64: of the words, and of each word
times its index. It notices writes to a file, but does not protect against deliberate deception;
sha256 does.
"""

from typing import NamedTuple

import numpy as np
from numba import types, uint8, uint64

from numtok.errors import DataError
from numtok.kernels import byte_at, inlined, kernel, reads, word_at


class Stamp(NamedTuple):
    """Says, without reading it again, whether a file was changed since it was planned."""

    size: int
    modified: int | str  # nanoseconds; of an object its entity tag, or what stands for one


def changed(shown: str) -> DataError:
    """Make the error for a file that differs from the plan."""
    return DataError(
        f"{shown} changed while it was read; run the command again when nothing writes to it"
    )


class Checksum(NamedTuple):
    """Of ``size`` bytes; :meth:`over` goes on with more."""

    size: int = 0
    total: int = 0
    weighted: int = 0

    def over(self, data: "bytes | memoryview") -> "Checksum":
        """The checksum of these bytes and ``data`` behind them, however they are cut.

        >>> Checksum().over(b"ab").over(b"c") == Checksum().over(b"abc")
        True
        """
        sums = _sums(np.frombuffer(data, np.uint8), *map(np.uint64, self))
        return Checksum(self.size + len(data), *map(int, sums))


@inlined
def _bytewise(data, begin, end, place, total, weighted):  # type: ignore[no-untyped-def]
    """The sums over bytes, each added to its word where the cut is within one."""
    for i in range(begin, end):
        eighth = (place & np.uint64(7)) << np.uint64(3)
        part = np.uint64(byte_at(data, i)) << eighth
        place += np.uint64(1)
        total += part
        weighted += part * ((place + np.uint64(7)) >> np.uint64(3))
    return place, total, weighted


@kernel(types.UniTuple(uint64, 2)(reads(uint8), uint64, uint64, uint64))  # type: ignore[no-untyped-call]
def _sums(data, place, total, weighted):  # type: ignore[no-untyped-def]
    head = min(np.int64(len(data)), np.int64(-place & np.uint64(7)))
    words = (len(data) - head) >> 3
    place, total, weighted = _bytewise(data, 0, head, place, total, weighted)
    first = (place >> np.uint64(3)) + np.uint64(1)
    for k in range(words):
        word = word_at(data, head + 8 * k)
        total += word
        weighted += word * (first + np.uint64(k))
    place += np.uint64(8 * words)
    tail = head + 8 * words
    _, total, weighted = _bytewise(data, tail, len(data), place, total, weighted)
    return total, weighted
