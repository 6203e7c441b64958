"""logarithm: one token for sign and base-10 logarithm. ``-60.2`` -> ``-10^1.78``.

A scheme from outside the package that derives only from ``Scheme``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    Channel,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    Scheme,
)
from numtok.numerals.column import Numerals

# Logarithms in hundredths, for 1e-6 to 1e10. Ids: all positive numbers, then all negative ones,
# then one token for each value without a logarithm in this range.
_STEPS = range(-600, 1001)
_EXTRAS = ("ZERO", "NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
_VOCABULARY = (*(f"{sign}10^{step / 100:.2f}" for sign in "+-" for step in _STEPS), *_EXTRAS)
_EDGES = 10.0 ** ((np.arange(len(_STEPS) + 1) + _STEPS[0] - 0.5) / 100)  # between the steps

# The value of each id. With six digits, it is the same on every computer.
_SIZES = np.array([float(f"{10.0 ** (step / 100):.6g}") for step in _STEPS])
_VALUES = np.concatenate([_SIZES, -_SIZES, [0, np.nan, np.inf, -np.inf], [np.nan] * 4])
_FAILURES = np.zeros(len(_VALUES), np.uint8)
_FAILURES[-4:-2], _FAILURES[-2:] = Failure.UNDERFLOW, Failure.OVERFLOW


@dataclass(frozen=True)
class Logarithm(Scheme):
    """The logarithm rounded to a hundredth: numbers within 1.2% of each other share a token."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "numtok's tests"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.2", "-10^1.78", "-60.256"),
        ("0.001", "+10^-3.00", "0.001"),
        ("0", "ZERO", "0.0"),
        ("-1e11", "-OVERFLOW", "overflow"),
    )

    @property
    def tokens_per_number(self) -> int:
        return 1

    @property
    def bounds(self) -> Bounds:
        return Bounds(1e-6, 1e10)

    @property
    def error(self) -> LargestError:
        return LargestError(0.0116)  # 10 ** 0.005 - 1, and the six digits

    def vocabulary(self) -> tuple[str, ...]:
        return _VOCABULARY

    def encode(self, numerals: Numerals) -> Encoded:
        values, negative = numerals.values, np.signbit(numerals.values)
        above, below = numerals.out_of_float64()  # 1e400 and 1e-400, whose values are inf and 0
        with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf
            steps = np.rint(100 * np.log10(np.abs(values)))
        outcomes = np.zeros(len(values), np.uint8)  # ordinary numbers, except for these
        outcomes[steps < _STEPS[0]] = Outcome.POSITIVE_UNDERFLOW
        outcomes[steps > _STEPS[-1]] = Outcome.POSITIVE_OVERFLOW
        outcomes[(values == 0) & ~below] = Outcome.ZERO
        outcomes[np.isinf(values) & ~above] = Outcome.POSITIVE_INFINITY
        outcomes[(outcomes > 0) & negative] += 1  # the negative twin comes next in Outcome
        outcomes[np.isnan(values)] = Outcome.NAN

        places = np.where(outcomes, 0, steps - _STEPS[0]).astype(np.int64)
        special = np.maximum(outcomes.astype(np.int64) - 2, 0)  # 0 and -0 share a token
        extras = 2 * len(_STEPS) + special
        tokens = np.where(outcomes, extras, places + negative * len(_STEPS))
        return Encoded(tokens.astype(np.uint32), np.ones(len(values), np.int32), outcomes)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        single = np.flatnonzero(lengths == 1)  # a number of any other length is malformed
        token = tokens[np.cumsum(lengths, dtype=np.int64)[single] - 1]
        known = token < len(_VALUES)
        values[single[known]] = _VALUES[token[known]]
        failures[single[known]] = _FAILURES[token[known]]
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        # Any token may come first, and completes the number.
        return Next(np.full(len(_VALUES), not prefix), may_end=bool(prefix))

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        name, place = _VOCABULARY[tokens[0]], tokens[0] % len(_STEPS)
        if name[1:] == "UNDERFLOW":
            low, high = 0.0, _EDGES[0]
        elif name[1:] == "OVERFLOW":
            low, high = _EDGES[-1], np.inf
        elif name in _EXTRAS:  # a single value
            return Bounds(_VALUES[tokens[0]], _VALUES[tokens[0]])
        else:
            low, high = _EDGES[place], _EDGES[place + 1]
        return Bounds(-high, -low) if name[0] == "-" else Bounds(low, high)
