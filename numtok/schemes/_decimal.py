"""What the schemes of Charton (2022) share: a sign, a mantissa of few digits, an exponent.

A number is rounded to ``digits`` significant digits and written as
``sign mantissa E exponent`` with an integer mantissa, so -60.2 is -602E-1. The
schemes differ only in how these three are grouped into tokens. Numbers that
cannot be written so are one declared extra token, repeated to the scheme's
width: every number has the same number of tokens, so a masked number does not
tell by its length whether it was zero.
"""

from abc import abstractmethod
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.registry import Interval
from numtok.schemes.base import Bounds, Decoded, Encoded, Failure, Next, Outcome, Scheme

#: The extra tokens, in the order of their ids after the counted ones.
EXTRAS = ("ZERO", "NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
SIGNS = ("+", "-")

_EXTRA_OF_OUTCOME = np.array([0, 0, 0, 1, 2, 3, 4, 5, 6, 7], np.uint32)
_VALUE_OF_EXTRA = np.array([0.0, np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURE_OF_EXTRA = np.array(
    [Failure.NONE] * 4 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8
)
_POWERS = 10.0 ** np.arange(23)  # exact


class Parts(NamedTuple):
    """Numbers in the form (-1)^negative * mantissa * 10^exponent, with their outcomes."""

    outcomes: NDArray[np.uint8]
    negative: NDArray[np.bool_]
    mantissa: NDArray[np.int64]
    exponent: NDArray[np.int32]


def decompose(numerals: Numerals, digits: int, exponents: Interval) -> Parts:
    """Round every number to ``digits`` digits and name those that do not fit into ``exponents``.

    Rows whose outcome is not NUMBER have an arbitrary mantissa and exponent within range.
    """
    negative, mantissa, exponent = numerals.rounded(digits)
    below, above = exponent < exponents.first, exponent > exponents.last
    outcomes = np.zeros(len(numerals), np.uint8)
    outcomes[below] = Outcome.POSITIVE_UNDERFLOW
    outcomes[above] = Outcome.POSITIVE_OVERFLOW
    without_digits = mantissa == 0
    outcomes[without_digits] = Outcome.ZERO
    outcomes[without_digits & np.isinf(numerals.values)] = Outcome.POSITIVE_INFINITY
    outcomes[(outcomes != Outcome.NUMBER) & negative] += 1  # the negative twin comes next
    outcomes[without_digits & np.isnan(numerals.values)] = Outcome.NAN
    mantissa[without_digits] = 10 ** (digits - 1)
    return Parts(outcomes, negative, mantissa, np.clip(exponent, exponents.first, exponents.last))


def compose(
    negative: NDArray[np.bool_], mantissa: NDArray[np.int64], exponent: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The float64 nearest to each decimal, bit for bit what ``float("602E-1")`` gives.

    One division or multiplication of exact operands is correctly rounded; only exponents beyond
    22 need the slow way.
    """
    magnitude = mantissa.astype(np.float64)
    power = _POWERS[np.minimum(np.abs(exponent), 22)]
    with np.errstate(over="ignore"):
        values = np.where(exponent < 0, magnitude / power, magnitude * power)
    for index in np.flatnonzero((np.abs(exponent) > 22) | (mantissa >= 2**53)):
        values[index] = float(f"{mantissa[index]}E{exponent[index]}")
    return np.where(negative, -values, values)


@lru_cache
def _half_step_bounds(mantissa: int, exponent: int, digits: int) -> Bounds:
    """The magnitudes that round to ``mantissa * 10^exponent``; below a power of ten the steps
    are ten times finer."""
    finer = mantissa == 10 ** (digits - 1)
    low = Decimal(mantissa) - Decimal("0.05" if finer else "0.5")
    high = Decimal(mantissa) + Decimal("0.5")
    return Bounds(float(low.scaleb(exponent)), float(high.scaleb(exponent)))


class DecimalScheme(Scheme):
    """Sign, mantissa and exponent in ``tokens_per_number`` tokens; leaves say how."""

    exponents: Interval

    @property
    @abstractmethod
    def mantissa_digits(self) -> int:
        """Significant digits that are kept."""

    @abstractmethod
    def slots(self) -> tuple[range, ...]:
        """The local ids that an ordinary number may have at each position; exponents come last."""

    @abstractmethod
    def write(
        self, negative: NDArray[np.bool_], mantissa: NDArray[np.int64], exponent: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        """The local ids at each position, integers or bools [n] each; ``exponent`` counts from
        ``exponents.first``."""

    @abstractmethod
    def read(
        self, tokens: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """The inverse of :meth:`write` for tokens within :meth:`slots`."""

    @abstractmethod
    def counted_vocabulary(self) -> tuple[str, ...]:
        """The tokens that the paper counts, by local id."""

    @property
    def counted(self) -> int:
        return self.slots()[-1].stop

    @property
    def tokens_per_number(self) -> int:
        return len(self.slots())

    @property
    def bounds(self) -> Bounds:
        smallest = Decimal(10) ** (self.mantissa_digits - 1 + self.exponents.first)
        largest = (Decimal(10) ** self.mantissa_digits - 1).scaleb(self.exponents.last)
        return Bounds(float(smallest), float(largest))

    @property
    def relative_error(self) -> float:
        return 0.5 * 10.0 ** (1 - self.mantissa_digits)

    def vocabulary(self) -> tuple[str, ...]:
        return self.counted_vocabulary() + EXTRAS

    def encode(self, numerals: Numerals) -> Encoded:
        parts = decompose(numerals, self.mantissa_digits, self.exponents)
        exponent = parts.exponent.astype(np.int64) - self.exponents.first
        tokens = np.empty((len(numerals), self.tokens_per_number), np.uint32)
        for position, ids in enumerate(self.write(parts.negative, parts.mantissa, exponent)):
            tokens[:, position] = ids
        special = np.flatnonzero(parts.outcomes)
        tokens[special] = (self.counted + _EXTRA_OF_OUTCOME[parts.outcomes[special]])[:, None]
        lengths = np.full(len(numerals), self.tokens_per_number, np.int32)
        return Encoded(tokens.reshape(-1), lengths, parts.outcomes)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: NDArray[np.float32] | None = None,
    ) -> Decoded:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        width = self.tokens_per_number
        whole = np.flatnonzero(lengths == width)
        firsts = np.cumsum(lengths, dtype=np.int64)[whole] - width
        table = tokens.astype(np.int64)[firsts[:, None] + np.arange(width)]

        slots = self.slots()
        ordinary = np.logical_and.reduce(
            [
                (table[:, k] >= slot.start) & (table[:, k] < slot.stop)
                for k, slot in enumerate(slots)
            ]
        )
        negative, mantissa, exponent = self.read(table[ordinary])
        values[whole[ordinary]] = compose(negative, mantissa, exponent + self.exponents.first)
        failures[whole[ordinary]] = Failure.NONE

        extra = table[:, 0] - self.counted
        special = (extra >= 0) & (extra < len(EXTRAS)) & (table == table[:, :1]).all(axis=1)
        values[whole[special]] = _VALUE_OF_EXTRA[extra[special]]
        failures[whole[special]] = _FAILURE_OF_EXTRA[extra[special]]
        return Decoded(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        allowed = np.zeros(self.counted + len(EXTRAS), np.bool_)
        position = len(prefix)
        if position == self.tokens_per_number:
            return Next(allowed, may_end=True)
        if prefix and prefix[0] >= self.counted:
            allowed[prefix[0]] = True
        else:
            slot = self.slots()[position]
            allowed[slot.start : slot.stop] = True
            if position == 0:
                allowed[self.counted :] = True
        return Next(allowed, may_end=False)

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        if tokens[0] >= self.counted:
            return self._interval_of_extra(EXTRAS[tokens[0] - self.counted])
        table = np.array([tokens], np.int64)
        negative, mantissa, exponent = (part.item() for part in self.read(table))
        low, high = _half_step_bounds(
            mantissa, exponent + self.exponents.first, self.mantissa_digits
        )
        return Bounds(-high, -low) if negative else Bounds(low, high)

    def _interval_of_extra(self, extra: str) -> Bounds:
        if extra == "ZERO":
            return Bounds(0.0, 0.0)
        if extra == "NAN":
            return Bounds(np.nan, np.nan)
        least = _half_step_bounds(
            10 ** (self.mantissa_digits - 1), self.exponents.first, self.mantissa_digits
        ).low
        most = _half_step_bounds(
            10**self.mantissa_digits - 1, self.exponents.last, self.mantissa_digits
        ).high
        low, high = {
            "INF": (np.inf, np.inf),
            "UNDERFLOW": (0.0, least),
            "OVERFLOW": (most, np.inf),
        }[extra[1:]]
        return Bounds(low, high) if extra[0] == "+" else Bounds(-high, -low)


def exponent_tokens(exponents: Interval) -> tuple[str, ...]:
    """``E-8`` ... ``E+7``, as Table 1 of the xVal paper writes them."""
    return tuple(f"E{exponent:+d}" for exponent in range(exponents.first, exponents.last + 1))


def check_exponents(name: str, exponents: Interval, digits: int) -> None:
    """Refuse exponents whose numbers float64 cannot hold."""
    if exponents.first + digits - 1 < -307 or exponents.last + digits > 308:
        raise UsageError(
            f"{name}: exponents={exponents} reaches beyond float64; with {digits} digits "
            f"{-306 - digits}..{308 - digits} is the widest range"
        )
