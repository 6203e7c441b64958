"""Distributions of numbers with independent digits in scientific notation, for the base-10 head."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.models.distributions.floating import FloatingPlaces
from numtok.models.distributions.predictive import Floats
from numtok.models.distributions.prefix_tree import Symbols

EXPONENT, MANTISSA = 3, 17  # digits, after the sign
BIAS = 500  # added to exponents, so that they are not negative
MOST = 308  # first exponent whose numbers are infinite
_EXPONENTS = range(-BIAS, MOST)
_SMALLEST = np.nextafter(0.0, 1.0)
_ZERO = "0" * (EXPONENT + MANTISSA)
_POWERS = np.array([float(f"1e{exponent}") for exponent in (*_EXPONENTS, MOST)])


def digits_of(sizes: Floats) -> Symbols:
    """Return int64[n, 20]: the three digits of (exponent + 500), then 17 digits of the mantissa.

    ``sizes`` [n] are absolute values. All digits of zero are 0, and infinity has the digits of
    1e308.

    >>> "".join(map(str, digits_of(np.array([60.2]))[0]))
    '50160200000000000003'
    """
    finite = np.where(np.isfinite(sizes), np.abs(sizes), _POWERS[-1])
    written = [f"{size:.16e}" for size in finite.tolist()]  # rounded to nearest
    whole = "".join(
        f"{int(text[19:]) + BIAS:03}{text[0]}{text[2:18]}" if text[0] != "0" else _ZERO
        for text in written
    )
    flat = np.frombuffer(whole.encode(), np.uint8).astype(np.int64) - ord("0")
    return flat.reshape(-1, EXPONENT + MANTISSA)


def sizes_of(digits: Symbols) -> Floats:
    """Return float64[n, ...]: the absolute values with the digits int64[n, 20, ...].

    This is the inverse of :func:`digits_of`. A mantissa that starts with 0 means 0. Other sizes
    that underflow become the smallest float64, and all sizes of at least 1e308 are infinite.
    """
    places = np.moveaxis(digits, 1, -1)
    exponents = places[..., :EXPONENT] @ 10 ** np.arange(EXPONENT)[::-1] - BIAS
    mantissas = places[..., EXPONENT:] @ 10 ** np.arange(MANTISSA)[::-1]
    pairs = zip(mantissas.ravel().tolist(), exponents.ravel().tolist(), strict=True)
    read = [float(f"{mantissa}e{exponent - MANTISSA + 1}") for mantissa, exponent in pairs]
    sizes = np.where(exponents < MOST, np.array(read).reshape(exponents.shape), np.inf)
    return np.where(places[..., EXPONENT] > 0, np.maximum(sizes, _SMALLEST), 0.0)


@dataclass(frozen=True, eq=False)
class IndependentScientific(FloatingPlaces):
    """Distributions of ``n`` numbers with a sign and 20 independent digits in scientific notation.

    Every number is an atom. The first three digits are the exponent, and the other 17 the mantissa.
    A mantissa that starts with 0 means zero.

    >>> digits = digits_of(np.array([17.5]))[:, :, None] == np.arange(10)
    >>> sure = np.log(np.where(digits, 1.0, 1e-300))
    >>> one = IndependentScientific(np.log([[1.0, 1e-300]]), sure)
    >>> one.mode().tolist(), one.median().tolist()
    ([17.5], [17.5])
    """

    log_sign: Floats  # [n, 2], of positive and negative; each row is normalized
    log_digits: Floats  # [n, 20, 10], highest digit first; each [10] is normalized

    exponents: ClassVar[int] = EXPONENT
    skipped: ClassVar[float] = 0.1

    @property
    def log_signs(self) -> Floats:
        return self.log_sign

    @cached_property
    def log_sizes(self) -> Floats:
        log_p = self.log_digits.copy()
        log_p[:, EXPONENT] -= self.log_others[:, None]
        log_p[:, EXPONENT, 0] = -np.inf
        return log_p

    @property
    def log_zero(self) -> Floats:
        return self.log_digits[:, EXPONENT, 0]

    @cached_property
    def log_others(self) -> Floats:
        return np.asarray(np.logaddexp.reduce(self.log_digits[:, EXPONENT, 1:], axis=1))

    @property
    def starts(self) -> tuple[Floats, Floats]:
        return _POWERS[:-1], np.diff(_POWERS)

    @property
    def last(self) -> Symbols:
        return np.full(EXPONENT + MANTISSA, 9)

    def symbols_of(self, sizes: Floats) -> Symbols:
        return digits_of(sizes)

    def sizes_of(self, symbols: Symbols) -> Floats:
        return sizes_of(symbols)

    def resolution(self, sizes: Floats) -> Floats:
        exponents = digits_of(sizes)[:, :EXPONENT] @ 10 ** np.arange(EXPONENT)[::-1] - BIAS
        units = np.array([float(f"1e{exponent - MANTISSA + 1}") for exponent in exponents.tolist()])
        return np.asarray(np.maximum(units, _SMALLEST))

    def mode(self) -> Floats:
        """Return float64[n]: the number made of the most probable sign and digits. It can be
        infinite."""
        sizes = sizes_of(self.log_digits.argmax(axis=2))
        return np.where((self.log_signs[:, 1] > self.log_signs[:, 0]) & (sizes > 0), -sizes, sizes)
