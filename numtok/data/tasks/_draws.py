"""Random numbers that are a pure function of seed, split and unit, and equal on all machines.

Only the raw bits of a generator are used, because numpy guarantees the stream of PCG64, but not the
algorithms of its distributions.
"""

import hashlib
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from numtok.data.tasks.base import TaskSplit


def uniforms(
    seed: int, split: TaskSplit, index: int, rows: int, columns: int
) -> NDArray[np.float64]:
    """Return independent uniform numbers [columns, rows] in (0, 1).

    The numbers are multiples of 2^-53, except that 2^-54 replaces 0.

    >>> uniforms(0, TaskSplit("train", 10), 0, 2, 1)
    array([[0.02715983, 0.06951194]])
    """
    drawn = _numbers(_generator(f"{split.name} {index} {seed}"), rows * columns)
    return drawn.reshape(columns, rows)


def uniforms_of_rows(purpose: str, rows: range, columns: int) -> NDArray[np.float64]:
    """Return uniform numbers [columns, rows] that only depend on the purpose and the row number.

    Unlike with :func:`uniforms`, the numbers of a row do not depend on which other rows are
    requested.

    >>> uniforms_of_rows("a", range(5, 7), 1)
    array([[0.25225261, 0.42196942]])
    """
    generator = _generator(purpose)
    generator.advance(rows.start * columns)
    return _numbers(generator, len(rows) * columns).reshape(len(rows), columns).T


def random_order(purpose: str, rows: int) -> NDArray[np.int64]:
    """Return a random permutation [rows] that only depends on the purpose and the size.

    >>> random_order("a", 4)
    array([0, 3, 1, 2])
    """
    (chance,) = uniforms_of_rows(purpose, range(rows), 1)
    return np.argsort(chance, kind="stable")


def raw_bits(purpose: str) -> Callable[[int], NDArray[np.uint64]]:
    """Return a function that, given ``n``, returns the next ``n`` random 64-bit words (uint64[n]).

    >>> raw_bits("a")(1)
    array([9203997037705486458], dtype=uint64)
    """
    return _generator(purpose).random_raw


def _generator(purpose: str) -> np.random.PCG64:
    digest = hashlib.sha256(purpose.encode()).digest()
    return np.random.PCG64(int.from_bytes(digest, "big"))


def _numbers(generator: np.random.PCG64, count: int) -> NDArray[np.float64]:
    bits = generator.random_raw(count)
    # Never 0, which has no finite normal quantile.
    drawn: NDArray[np.float64] = np.maximum((bits >> np.uint64(11)) * 2.0**-53, 2.0**-54)
    return drawn


def normal_quantiles(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard normal quantiles [n] of probabilities [n].

    >>> normal_quantiles(np.array([0.5, 0.975])).round(3)
    array([0.  , 1.96])
    """
    quantile = NormalDist().inv_cdf
    return np.array([quantile(share) for share in shares.tolist()])
