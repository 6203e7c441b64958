"""Scanning numbers in text, and the values of literals."""

from contextlib import nullcontext
from random import Random

import numpy as np

from tests.numerals import test_numerals as numerals
from tests.numerals.test_golden import scanned
from tests.trust.promise import Promise

_TEXTS = 0.05  # fraction of the cases that scan texts
_KINDS = (
    lambda rng, random: numerals.random_reprs(rng, 100_000),
    lambda rng, random: numerals.random_reprs(rng, 100_000),
    lambda rng, random: numerals.random_long_digits(rng, 50_000),
    lambda rng, random: numerals.random_subnormals(rng, 50_000),
    lambda rng, random: list(numerals.random_halfway_cases(rng, 1_000)),
    lambda rng, random: list(numerals.random_short_ties(random, 50_000)),
)


def literals(_: None, random: Random) -> int:
    """Compare values of literals with ``float()``, or scanned texts with the slow reference."""
    if random.random() < _TEXTS:
        column = ["".join(random.choices(numerals.FRAGMENTS, k=12)) for _ in range(2_000)]
        policy = random.choice(numerals.ALL_POLICIES)
        found, expected = scanned(column, policy), numerals.expected(column, policy)
        for text, one, other in zip(column, found, expected, strict=True):
            assert one == other, f"{policy.spec()}: {text!r}: {one}, expected {other}"
        return sum(map(len, found))
    rng = np.random.default_rng(random.getrandbits(64))
    written = random.choice(_KINDS)(rng, random)
    numerals.assert_same_bits(written)
    return 2 * len(written)


LITERALS = Promise(
    name="literals",
    says="Numbers in text are those of the published rule, and each has the value that `float()` "
    "gives, to the last bit.",
    how="Random literals, with and without a minus: `repr` of random bits, subnormals, up to 40 "
    "digits, ties and their neighbors. One case in 20 scans random texts under any policy and "
    "compares the numbers with a slow reading by regular expressions.",
    aim=100_000_000,
    unit="literals",
    world=lambda folder: nullcontext(),
    case=literals,
)
