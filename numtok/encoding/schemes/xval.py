"""xVal: one token ``[NUM]`` for every number, its value in a channel beside it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._single import SingleTokenScheme
from numtok.encoding.schemes.base import Bounds, Encoded, Failure, outcomes_of
from numtok.numerals.column import Numerals

# In the order of their outcomes, from that of NaN on.
_EXTRAS = ("NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
_LEAST = float(np.finfo(np.float32).tiny)  # below it float32 loses digits, and devices flush to 0
_MOST = float(np.finfo(np.float32).max)
# By token, that of an ordinary number first.
_VALUES = np.array([0, np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURES = np.array(
    [Failure.NONE] * 4 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8
)


@dataclass(frozen=True)
class XVal(SingleTokenScheme):
    """Golkar et al., Section 2.1: the embedding of ``[NUM]`` is multiplied by the number.

    The channel is float32 and normalised into [-5, 5] by default, as in the paper's experiments.
    Zero is an ordinary number. What float32 cannot hold has a declared token and 1 in the channel.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.1"
    embedder: ClassVar[str] = "scaled"
    head: ClassVar[str] = "scalar"
    normalizer: ClassVar[str] = "scale:5"
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
        _, below = numerals.out_of_float64()
        under = (np.abs(channel) < _LEAST) & ((numerals.values != 0) | below)
        outcomes = outcomes_of(numerals, over=np.isinf(channel), under=under)
        channel[outcomes > 0] = 1.0
        tokens = np.maximum(outcomes, 2).astype(np.uint32) - np.uint32(2)
        return Encoded(tokens, np.ones(len(numerals), np.int32), outcomes, channel)

    def read(
        self, tokens: NDArray[np.int64], channel: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        return np.where(tokens == 0, channel.astype(np.float64), _VALUES[tokens]), _FAILURES[tokens]

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
