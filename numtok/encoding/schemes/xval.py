"""xVal: one token ``[NUM]`` for every number, its value in a channel beside it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    DecodedNumbers,
    Encoded,
    Failure,
    Next,
    Outcome,
    Scheme,
)
from numtok.numerals.column import Numerals

_EXTRAS = ("NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
_LEAST = float(np.finfo(np.float32).tiny)  # below it float32 loses digits, and devices flush to 0
_MOST = float(np.finfo(np.float32).max)
_OUTCOME_OF_EXTRA = np.array([0, *range(Outcome.NAN, len(Outcome))], np.uint8)
_VALUE_OF_EXTRA = np.array([np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURE_OF_EXTRA = np.array(
    [Failure.NONE] * 3 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8
)


@dataclass(frozen=True)
class XVal(Scheme):
    """Golkar et al., Section 2.1: the embedding of ``[NUM]`` is multiplied by the number.

    The channel is float32 and normalised into [-5, 5] by default, as in the paper's experiments.
    Zero is an ordinary number. What float32 cannot hold has a declared token and 1 in the channel.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.1"
    embedder: ClassVar[str] = "scaled"
    head: ClassVar[str] = "scalar"
    normalizer: ClassVar[str] = "scale:5"
    channel: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "[NUM]", "-60.20000076293945"),
        ("0", "[NUM]", "0.0"),
        ("1e40", "+OVERFLOW", "overflow"),
        ("-1e-400", "-UNDERFLOW", "underflow"),
    )
    digest: ClassVar[str] = "b0330c83ff75fa9e"

    @property
    def paper_vocabulary_size(self) -> int:
        return 1

    @property
    def tokens_per_number(self) -> int:
        return 1

    @property
    def bounds(self) -> Bounds:
        return Bounds(_LEAST, _MOST)

    @property
    def relative_error(self) -> float:
        return 2.0**-24

    @property
    def factors(self) -> NDArray[np.float64]:
        return np.array([1.0, *[np.nan] * len(_EXTRAS)])

    def vocabulary(self) -> tuple[str, ...]:
        return ("[NUM]", *_EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        with np.errstate(over="ignore", under="ignore"):
            channel = numerals.values.astype(np.float32)
        tokens = np.zeros(len(numerals), np.uint32)
        negative = np.signbit(numerals.values)
        above, below = numerals.out_of_float64()
        infinite = np.isinf(numerals.values) & ~above
        overflow = np.isinf(channel) & ~infinite
        underflow = (np.abs(channel) < _LEAST) & ((numerals.values != 0) | below)
        for extra, chosen in ((2, infinite), (4, underflow), (6, overflow)):
            tokens[chosen] = extra + negative[chosen]
        tokens[np.isnan(numerals.values)] = 1
        channel[tokens != 0] = 1.0
        lengths = np.ones(len(numerals), np.int32)
        return Encoded(tokens, lengths, _OUTCOME_OF_EXTRA[tokens], channel)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: NDArray[np.float32] | None = None,
    ) -> DecodedNumbers:
        if channel is None:
            raise ValueError("xval: decoding needs the value channel")
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        single = np.flatnonzero(lengths == 1)
        first = tokens.astype(np.int64)[np.cumsum(lengths, dtype=np.int64)[single] - 1]

        number = single[first == 0]
        values[number] = channel[number].astype(np.float64)
        failures[number] = Failure.NONE

        special = (first >= 1) & (first <= len(_EXTRAS))
        values[single[special]] = _VALUE_OF_EXTRA[first[special] - 1]
        failures[single[special]] = _FAILURE_OF_EXTRA[first[special] - 1]
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        return Next(np.full(1 + len(_EXTRAS), not prefix), may_end=bool(prefix))

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        return (
            Bounds(-np.inf, np.inf),  # the channel says which
            Bounds(np.nan, np.nan),
            Bounds(np.inf, np.inf),
            Bounds(-np.inf, -np.inf),
            Bounds(0.0, _LEAST),
            Bounds(-_LEAST, 0.0),
            Bounds(_MOST, np.inf),
            Bounds(-np.inf, -_MOST),
        )[tokens[0]]
