"""Randomness as a pure function of a key such as (seed, purpose, index).

Whoever asks for step 1,234 gets what a run from the start would have had there, so a run goes on at
any step and does not depend on how many processes share the work.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: the step of SplitMix64


def seed_of(*key: str | int) -> int:
    """A seed of 63 bits for a key such as (seed, "masks", step); stable between versions.

    >>> seed_of(0, "masks", 1) == seed_of(0, "masks", 1) != seed_of(0, "masks", 2)
    True
    """
    text = "\0".join(map(str, key)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def generator(*key: str | int) -> np.random.Generator:
    """A new PCG64 generator at the beginning of the stream of a key."""
    return np.random.Generator(np.random.PCG64(seed_of(*key)))


def uniforms(numbers: NDArray[np.int64], *key: str | int) -> NDArray[np.float64]:
    """float64[n] in [0, 1), each a pure function of the key and of its number (int64[n]).

    The key seeds a SplitMix64 (Steele, Lea and Flood 2014), whose k-th output is that of number
    k: it can be had without those before it.

    >>> uniforms(np.array([7, 2]), 0, "draws") == uniforms(np.arange(8), 0, "draws")[[7, 2]]
    array([ True,  True])
    """
    z = np.uint64(seed_of(*key)) + (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53, np.float64)
