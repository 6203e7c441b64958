"""NumGPT: one token a number, its exponent; the signed mantissa stands in a channel beside it."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import MantissaScheme
from numtok.encoding.schemes.base import SchemeDefaults
from numtok.registry import Interval


@dataclass(frozen=True)
class NumGPTScheme(MantissaScheme):
    """Jin et al. (2023): n = 10^e(n) f(n), e(n) one of 23 tokens and f(n) in (-10, 10).

    ``-123`` -> ``E2`` with -1.23 beside it (Equation 1). Numbers are not normalised. The paper
    reads ``2,300`` as 2300 and ``23%`` as 0.23: that is ``--numerals
    default,thousands=yes,percent=yes``.

    exponents
        Those that have a token; a number below them underflows, one above them overflows.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Equation 1"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="numgpt", head="numgpt")
    digest: ClassVar[str] = "10d1ab04342d9172"

    exponents: Interval = Interval(-8, 12)
