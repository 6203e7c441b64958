"""Sample distinct numbers log-uniformly and assign each to one split.

An entire split is sampled at once and cached. Sampling takes several rounds, each over the rows
that still lack numbers. To generate its first unit of a split, a process therefore samples the
entire split, which takes about a hundred nanoseconds per row.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.data.tasks._draws import random_order
from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.kernel_types import boolean, int64, reads, uint64, void, writes
from numtok.kernels import inlined, kernel


@inlined
def mix(z):  # type: ignore[no-untyped-def]
    """Hash 64 bits with the finalizer of SplitMix64 (Steele, Lea and Flood 2014), a bijection."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def permuted(number, left, right, keys):  # type: ignore[no-untyped-def]
    """Permute a number below ``left * right`` with a keyed Feistel network.

    Returns the two halves (p, q) of the result. All arguments are uint64, and ``left`` and
    ``right`` are below 2**63."""
    p, q = number % left, number // left
    for k in range(0, len(keys), 2):
        p += mix(q ^ keys[k]) % left
        if p >= left:
            p -= left
        q += mix(p ^ keys[k + 1]) % right
        if q >= right:
            q -= right
    return p, q


def keys_of(seed: int, purpose: str, count: int = 6) -> NDArray[np.uint64]:
    """Return keys (uint64[count]) that depend only on the seed and the purpose. Each is for one
    round of :func:`permuted`."""
    digest = hashlib.shake_256(f"{purpose} {seed}".encode()).digest(8 * count)
    return np.frombuffer(digest, "<u8").astype(np.uint64)


_TO_PLACE = np.uint64(64 - (SHARES.bit_length() - 1))  # number of low bits of a hash to drop
_ROUNDS = 200
_AT_ONCE = 1 << 22  # candidates
_USED = 0.75  # fraction of a split's possible rows to use; the rest would take ever longer to find


def log_draw(share: NDArray[np.float64], low: Ints | int, high: Ints | int) -> Ints:
    """Sample positive integers log-uniformly from ``low`` to ``high``, from uniform numbers [n].

    A log-uniform real number between ``low`` and ``high + 1`` is rounded down. Therefore n has
    probability log((n + 1) / n) / log((high + 1) / low), and all decades are equally likely.

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
    """Return hashes [n] of the content that two rows must not share: the kind and two numbers."""
    out = np.empty(len(kinds), np.uint64)
    columns = (np.ascontiguousarray(column, np.int64) for column in (kinds, first, second))
    _hash(keys_of(seed, "split", 1)[0], *columns, out)
    return out


def are_of(split: TaskSplit, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask [n] of the hashes [n] that belong to a split."""
    shares = hashes >> _TO_PLACE
    return (shares >= np.uint64(split.begin)) & (shares < np.uint64(split.end))


def parts_of(hashes: NDArray[np.uint64], count: int | Ints) -> Ints:
    """Map each hash [n] to one of ``count`` equally likely parts, independently of its split."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.int64)  # the high bits determine splits
    return low * count >> 32


class DrawnRows(NamedTuple):
    """Candidates for rows: numbers [k, n], their hashes [n], and whether they are usable [n]."""

    numbers: Ints
    hashes: NDArray[np.uint64]
    usable: NDArray[np.bool_]


@kernel(void(reads(int64), reads(uint64), reads(boolean), writes(uint64), writes(int64)))
def _admit(rows, hashes, usable, table, chosen):  # type: ignore[no-untyped-def]
    """Choose for each row its first usable candidate that is not in the table of hashes.

    The table uses open addressing; 0 is an empty slot. ``chosen`` is -1 for rows without one."""
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
    """Sample numbers [columns, rows] with different hashes; None if there are too few.

    In each round, ``draw`` is called with the indices of the rows without numbers, each repeated
    ``tries`` times, and with the index of the round. It returns a candidate for each index. A row
    receives its first usable candidate that no other row has; the other rows are tried again.
    """
    numbers = np.empty((columns, rows), np.int64)
    table = np.zeros(1 << (2 * rows).bit_length(), np.uint64)
    left = np.arange(rows)
    for attempt in range(_ROUNDS):
        if not len(left):
            return numbers
        these = np.repeat(left, min(tries, max(1, _AT_ONCE // len(left))))
        tried = draw(these, attempt)
        chosen = np.full(rows, -1)
        _admit(these, tried.hashes, tried.usable, table, chosen)
        got = chosen[left] >= 0
        done = left[got]
        numbers[:, done] = tried.numbers[:, chosen[done]]
        left = left[~got]
        if not len(done) and 2 * len(these) > _AT_ONCE:
            return None  # as many candidates again would not be different
        if len(done) < len(left):
            tries *= 2
    return None if len(left) else numbers


def shared_out(pairs: int, possible: Sequence[int], split: TaskSplit) -> Ints | None:
    """Distribute pairs of rows evenly over kinds; None if there are too few possible pairs.

    Returns the number of pairs of each kind [kinds]. A kind with too few possible pairs contributes
    all that belong to the split.

    >>> shared_out(10, [10**6, 4, 10**6], TaskSplit("train", 20)).tolist()
    [4, 3, 3]
    """
    most = (np.array(possible, np.float64) * _USED * split.share).astype(np.int64)
    counts = np.zeros(len(most), np.int64)
    remaining = set(range(len(most)))
    for kind in np.argsort(most, kind="stable").tolist():
        if most[kind] > pairs // len(remaining):
            break
        counts[kind] = most[kind]
        pairs -= int(most[kind])
        remaining.remove(kind)
    if not remaining:
        return None if pairs else counts
    each, left = divmod(pairs, len(remaining))
    open_kinds = np.array(sorted(remaining))
    counts[open_kinds] = each
    counts[open_kinds[random_order(f"order kinds {split.name}", len(remaining))[:left]]] += 1
    return counts
