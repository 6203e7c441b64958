"""Numbers drawn by their logarithm, none of them twice, and each in the one split that has it.

A whole split is drawn at once, in rounds over all rows that still lack something, and kept: so a
unit of it costs a draw of the split in each process, some hundred nanoseconds a row.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import boolean, int64, uint64, void
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.data.tasks._draws import random_order
from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.kernels import inlined, kernel, reads, writes

_ROUNDS = 6


@inlined
def mix(z):  # type: ignore[no-untyped-def]
    """A hash of 64 bits that changes half of them when one changes: the finaliser of SplitMix64
    (Steele, Lea and Flood 2014). A bijection."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def permuted(number, left, right, keys):  # type: ignore[no-untyped-def]
    """The halves (p, q) of the image of a number below ``left * right``; all are uint64, and
    ``left`` and ``right`` below 2**63."""
    p, q = number % left, number // left
    for k in range(0, len(keys), 2):
        p += mix(q ^ keys[k]) % left
        if p >= left:
            p -= left
        q += mix(p ^ keys[k + 1]) % right
        if q >= right:
            q -= right
    return p, q


def keys_of(seed: int, purpose: str, count: int = _ROUNDS) -> NDArray[np.uint64]:
    """uint64[count] that depend on the seed and on what they are for, and on nothing else."""
    digest = hashlib.shake_256(f"{purpose} {seed}".encode()).digest(8 * count)
    return np.frombuffer(digest, "<u8").astype(np.uint64)


_TO_PLACE = np.uint64(64 - (SHARES.bit_length() - 1))  # bits of a hash that are left out
_ROUNDS = 200
_AT_ONCE = 1 << 22  # draws
_USED = 0.75  # of what a split could have: the rest would take ever longer to be met


def log_draw(share: NDArray[np.float64], low: Ints | int, high: Ints | int) -> Ints:
    """Whole numbers from ``low`` to ``high``, both above 0, by shares [n] in [0, 1).

    The logarithmic sampler: a real number whose logarithm is uniform between those of ``low`` and
    ``high + 1``, cut off after the point. So n has the probability log((n + 1) / n) / log((high +
    1) / low), and every decade of the range is equally likely.

    >>> log_draw(np.array([0.0, 0.25, 0.5, 0.75, 0.999]), 1, 99).tolist()
    [1, 3, 10, 31, 99]
    """
    drawn = np.floor(low * np.exp(share * np.log((np.asarray(high) + 1) / low)))
    return np.clip(drawn, low, high).astype(np.int64)


@kernel(void(uint64, reads(int64), reads(int64), reads(int64), writes(uint64)))
def _hash(key, kinds, first, second, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        code = mix(key + np.uint64(kinds[k]))
        code = mix(code + np.uint64(first[k]))
        out[k] = mix(code + np.uint64(second[k]))


def identities(seed: int, kinds: Ints, first: Ints, second: Ints) -> NDArray[np.uint64]:
    """A hash [n] of what two rows must not have in common; it depends on no other setting."""
    out = np.empty(len(kinds), np.uint64)
    columns = (np.ascontiguousarray(column, np.int64) for column in (kinds, first, second))
    _hash(keys_of(seed, "split", 1)[0], *columns, out)
    return out


def are_of(split: TaskSplit, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether a split owns them [n]."""
    places = hashes >> _TO_PLACE
    return (places >= np.uint64(split.begin)) & (places < np.uint64(split.end))


def parts_of(hashes: NDArray[np.uint64], count: int | Ints) -> Ints:
    """Which of ``count`` equal parts [n] they are in, whatever their splits."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.int64)  # splits go by the high bits
    return low * count >> 32


class DrawnRows(NamedTuple):
    """What was drawn for some rows: numbers [k, n], their hashes, and which may be used."""

    numbers: Ints
    hashes: NDArray[np.uint64]
    usable: NDArray[np.bool_]


@kernel(void(reads(int64), reads(uint64), reads(boolean), writes(uint64), writes(int64)))
def _admit(rows, hashes, usable, table, chosen):  # type: ignore[no-untyped-def]
    """Give each row its first draw that can be used and is not in the table, a set of hashes with
    open addressing in which 0 is nothing; ``chosen`` is -1 for rows without one."""
    mask = np.uint64(len(table) - 1)
    for k in range(len(rows)):
        if not usable[k] or chosen[rows[k]] >= 0:
            continue
        code = max(hashes[k], np.uint64(1))
        slot = mix(code) & mask
        while table[slot] != 0 and table[slot] != code:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == 0:
            table[slot] = code
            chosen[rows[k]] = k


def without_repeats(
    rows: int, columns: int, tries: int, draw: Callable[[Ints, int], DrawnRows]
) -> Ints | None:
    """Numbers [columns, rows] with different hashes, or None where too few are to be had.

    ``draw`` is given rows, each ``tries`` times in a row, and the number of the round. A row has
    its first draw that can be used and that no row had before it; those without one try again.
    """
    found = np.empty((columns, rows), np.int64)
    table = np.zeros(1 << (2 * rows).bit_length(), np.uint64)
    left = np.arange(rows)
    for attempt in range(_ROUNDS):
        if not len(left):
            return found
        these = np.repeat(left, min(tries, max(1, _AT_ONCE // len(left))))
        tried = draw(these, attempt)
        chosen = np.full(rows, -1)
        _admit(these, tried.hashes, tried.usable, table, chosen)
        got = chosen[left] >= 0
        done = left[got]
        found[:, done] = tried.numbers[:, chosen[done]]
        left = left[~got]
        if len(done) < len(left):
            tries *= 2
    return None if len(left) else found


def shared_out(pairs: int, possible: Sequence[int], split: TaskSplit) -> Ints | None:
    """How many of some pairs of rows each kind has, or None where there are too few.

    Equally many, but for those of which a split cannot have so many: these have as many as it can.

    >>> shared_out(10, [10**6, 4, 10**6], TaskSplit("train", 20)).tolist()
    [4, 3, 3]
    """
    most = (np.array(possible, np.float64) * _USED * split.share).astype(np.int64)
    counts = np.zeros(len(most), np.int64)
    others = set(range(len(most)))
    for kind in np.argsort(most, kind="stable").tolist():
        if most[kind] > pairs // len(others):
            break
        counts[kind] = most[kind]
        pairs -= int(most[kind])
        others.remove(kind)
    if not others:
        return None if pairs else counts
    each, left = divmod(pairs, len(others))
    open_kinds = np.array(sorted(others))
    counts[open_kinds] = each
    counts[open_kinds[random_order(f"order kinds {split.name}", len(others))[:left]]] += 1
    return counts
