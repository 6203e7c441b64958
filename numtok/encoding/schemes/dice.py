"""dice: the tokens of ``numgpt``, with an embedder that converts numbers to angles (DICE)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from numtok.encoding.schemes._channel import MantissaScheme
from numtok.encoding.schemes.base import SchemeDefaults
from numtok.errors import UsageError
from numtok.setting_values import Interval, Range

RANGE = Range(0.0, 10_000.0)  # Sundararaman et al.'s


@dataclass(frozen=True)
class DiceScheme(MantissaScheme):
    """NumGPT with the embedder ``dice`` (Sundararaman et al. 2020), a baseline in NumGPT's Table 1.
    Tokens, channel and head are the same as in ``numgpt``.

    exponents
        Exponents that have a token, as in ``numgpt``.
    range
        Range of numbers that the embedder maps to angles. Numbers much smaller than the range have
        nearly the same angle and cannot be distinguished.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Table 1"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="dice",
        head="numgpt",
        same_tokens_as="numgpt",
        embedder_settings=("range",),
        sized=True,
    )
    digest: ClassVar[str] = "10d1ab04342d9172"

    exponents: Interval = Interval(-8, 12)
    range: Range = RANGE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self.range)

    def suited(self, largest: float, decimals: int) -> "DiceScheme":
        # Angles from -pi / 2 to pi / 2 all have different sines.
        return replace(self, range=Range(-largest, largest)) if largest else self


def check_range(range: Range) -> None:
    """Raise UsageError if a range is empty, reversed or infinite."""
    if not 0 < range.high - range.low < math.inf:
        raise UsageError(
            "dice: range must go from a number to a larger finite one, such as 0..10000 "
            f"(got {range})"
        )
