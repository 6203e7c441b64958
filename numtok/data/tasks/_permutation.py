"""A keyed permutation of [0, left * right): drawing without replacement, with nothing kept.

The n-th draw is the image of n, so any stretch of draws can be made on its own
and no two draws are ever equal. It is an unbalanced Feistel network: a number
is a pair (p, q), and rounds add, in turn, a hash of one half to the other::

    p <- p + F(q, key) mod left        q <- q + F(p, key) mod right

Each round can be undone, whatever F is, so the whole is a permutation for any
two sizes (Black and Rogaway 2002, "Ciphers with arbitrary finite domains",
have it for halves of nearly equal size). It has to look random, not to be secret.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from numtok.kernels import inlined

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
