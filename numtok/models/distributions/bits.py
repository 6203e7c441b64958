"""Distributions of float64 numbers with 64 independent bits, for the BitTokens head."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.floating import FloatingPlaces
from numtok.models.distributions.predictive import Floats
from numtok.models.distributions.prefix_tree import Symbols

EXPONENT, SIGNIFICAND = 11, 52  # bits, after the sign
_PLACES = EXPONENT + SIGNIFICAND
_SHIFTS = np.arange(_PLACES, -1, -1)
#: For each exponent except the one of infinity and NaN: the factor of the significand, and its
#: integer part.
_EXPONENTS = np.arange((1 << EXPONENT) - 1)
_SCALES = np.ldexp(1.0, np.maximum(_EXPONENTS, 1) - 1023)


def bits_of(values: Floats) -> NDArray[np.int64]:
    """Return int64[n, 64]: the bits of ``values`` float64[n], most significant bit first (sign,
    exponent, significand).

    >>> "".join(map(str, bits_of(np.array([17.5]))[0].tolist()))[:16]
    '0100000000110001'
    """
    return (values.view(np.int64)[:, None] >> _SHIFTS) & 1


def values_of(bits: NDArray[np.int64]) -> Floats:
    """Return float64[n, ...]: the numbers with the bits int64[n, 64, ...], which can be infinite or
    NaN.

    This is the inverse of :func:`bits_of`.
    """
    shifts = _SHIFTS.reshape(-1, *[1] * (bits.ndim - 2))
    whole: NDArray[np.int64] = np.bitwise_or.reduce(bits << shifts, axis=1)
    return whole.view(np.float64)


@dataclass(frozen=True, eq=False)
class IndependentBits(FloatingPlaces):
    """Distributions of ``n`` float64 numbers with 64 independent bits.

    Every number is an atom. A number whose exponent bits are all 1 is infinite or NaN.

    >>> bits = bits_of(np.array([17.5]))[:, :, None] == np.arange(2)
    >>> one = IndependentBits(np.log(np.where(bits, 1.0, 1e-300)))
    >>> one.mode().tolist(), one.median().tolist(), one.mean().tolist()
    ([17.5], [17.5], [17.5])
    """

    log_bits: Floats  # [n, 64, 2], of 0 and 1; each pair is normalized

    exponents: ClassVar[int] = EXPONENT

    @property
    def log_signs(self) -> Floats:
        return self.log_bits[:, 0]

    @property
    def log_sizes(self) -> Floats:
        return self.log_bits[:, 1:]

    @property
    def starts(self) -> tuple[Floats, Floats]:
        return np.where(_EXPONENTS > 0, _SCALES, 0.0), _SCALES

    @property
    def last(self) -> Symbols:
        return np.asarray(self.symbols_of(np.array([np.inf]))[0])

    def symbols_of(self, sizes: Floats) -> Symbols:
        return bits_of(sizes)[:, 1:]

    def sizes_of(self, symbols: Symbols) -> Floats:
        return values_of(np.concatenate([np.zeros_like(symbols[:, :1]), symbols], axis=1))

    def resolution(self, sizes: Floats) -> Floats:
        return np.spacing(np.where(np.isfinite(sizes), sizes, 1.0))

    def mode(self) -> Floats:
        """Return float64[n]: the number made of the most probable bits. It can be infinite or
        NaN."""
        return values_of(self.log_bits.argmax(axis=2))
