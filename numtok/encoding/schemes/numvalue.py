"""numvalue: a number is ``<num>`` and its characters. ``-60.2`` -> ``<num> - 6 0 . 2``."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.encoding.numeral_states import BEGIN, CHARACTERS, FOLLOWS, WHOLE
from numtok.encoding.schemes._literals import Follows, MarkedScheme, Marks, Spelt, parts_of
from numtok.encoding.schemes.base import DigitLimit, SchemeDefaults

PREFIX = "<num>"
DIGITS, DECIMALS = 18, 22  # digits seen by embedders of fixed width (Value-Aware, Table 5)
_E = "eE"


@dataclass(frozen=True)
class NumValueScheme(MarkedScheme):
    """Value-aware tokens: a number is written as the prefix ``<num>``, followed by its characters.
    The embedder ``numvalue`` computes the vector of the prefix from the value that follows.

    Each part of a number has its own prefix: mantissa and exponent in scientific notation, as in
    ``<num> 1 . 5 e <num> - 3``, and numerator and denominator of a fraction, which are treated as
    two numbers. A sign comes after the prefix. NaN and the infinities are written as one token
    each, without a prefix.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Value-Aware, Section 3.2"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="numvalue", embedder_digits=DigitLimit(DIGITS, DECIMALS)
    )
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("14", "<num> 1 4", "14"),
        ("-60.20", "<num> - 6 0 . 2 0", "-60.20"),
        ("1.5e-3", "<num> 1 . 5 e <num> - 3", "1.5e-3"),
        ("5.E+7", "<num> 5 . E <num> + 7", "5.E+7"),
        ("1,234%", "<num> 1 , 2 3 4 %", "1,234%"),
        ("inf", "+INF", "inf"),
    )
    digest: ClassVar[str] = "8af29c135a9cf940"

    @property
    def marks(self) -> tuple[str, ...]:
        return (PREFIX,)

    @cached_property
    def follows(self) -> Follows:
        after_e = {_E: "behind e"}
        after = {
            state: {some: after_e.get(some, name) for some, name in follows.items()}
            for state, follows in FOLLOWS.items()
        }
        return Follows(after | {BEGIN: {PREFIX: ""}, "behind e": {PREFIX: "e"}}, WHOLE)

    def marked(self, spelt: Spelt) -> Marks:
        parts = parts_of(spelt)
        prefix = np.full(len(parts.first), len(CHARACTERS), np.uint32)
        return Marks(parts.first, parts.number, prefix)
