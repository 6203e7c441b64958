"""NumGPT: one token per number for its exponent; the signed mantissa is in the value channel."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import MantissaScheme
from numtok.encoding.schemes.base import SchemeDefaults
from numtok.setting_values import Interval


@dataclass(frozen=True)
class NumGPTScheme(MantissaScheme):
    """NumGPT (Jin et al. 2023): a number is ``10^e * f``, where the exponent e is one of 23 tokens
    and the mantissa f, in (-10, 10), is the channel value.

    ``-123`` is ``E2`` with the channel value -1.23 (Equation 1). Numbers are not normalized. The
    paper reads ``2,300`` as 2300 and ``23%`` as 0.23; use
    ``--numbers thousands,percent`` for this.

    exponents
        Exponents that have a token. Smaller numbers underflow, larger ones overflow.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Equation 1"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="numgpt", head="numgpt")
    digest: ClassVar[str] = "10d1ab04342d9172"

    exponents: Interval = Interval(-8, 12)
