"""GPT with DICE: the tokens of ``numgpt``, and the whole number goes in by its angle."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from numtok.encoding.schemes._channel import MantissaScheme
from numtok.encoding.schemes.base import SchemeDefaults
from numtok.errors import UsageError
from numtok.registry import Interval, Range

RANGE = Range(0.0, 10_000.0)  # Sundararaman et al.'s


@dataclass(frozen=True)
class DiceScheme(MantissaScheme):
    """The baseline of NumGPT's Table 1: NumGPT with the embedder ``dice`` (Sundararaman et al.
    2020) in place of its own. Tokens, channel and head are those of ``numgpt``.

    exponents
        As in ``numgpt``.
    range
        The embedder's: numbers much smaller have nearly the same angle, and tell it nothing.
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
        # Of angles from -pi / 2 to pi / 2 no two have the same sine.
        return replace(self, range=Range(-largest, largest)) if largest else self


def check_range(range: Range) -> None:
    """Raises UsageError for a range whose numbers have no angles, or all the same."""
    if not 0 < range.high - range.low < math.inf:
        raise UsageError(
            f"dice: range={range} is not possible; it is from one number to a larger one, such as "
            "0..10000"
        )
