"""Random numbers as a pure function of a key such as (seed, purpose, index).

Step 1,234 gets the same numbers whether the run started at step 0 or resumed, so runs can resume at
any step and do not depend on the number of processes.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: the step of SplitMix64


def seed_of(*key: str | int) -> int:
    """Return a 63-bit seed for a key such as (seed, "masks", step). It is the same in every version
    of numtok.

    >>> seed_of(0, "masks", 1) == seed_of(0, "masks", 1) != seed_of(0, "masks", 2)
    True
    """
    text = "\0".join(map(str, key)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def generator(*key: str | int) -> np.random.Generator:
    """Return a new PCG64 generator that is seeded with a key."""
    return np.random.Generator(np.random.PCG64(seed_of(*key)))


def uniforms(numbers: NDArray[np.int64], *key: str | int) -> NDArray[np.float64]:
    """Return uniform random numbers float64[n] in [0, 1), one for each integer in ``numbers``
    (int64[n]).

    Each result is a pure function of the key and its integer k: the k-th output of a SplitMix64
    generator (Steele, Lea and Flood 2014) seeded by the key, computed without the previous outputs.

    >>> uniforms(np.array([7, 2]), 0, "draws") == uniforms(np.arange(8), 0, "draws")[[7, 2]]
    array([ True,  True])
    """
    z = np.uint64(seed_of(*key)) + (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53, np.float64)
