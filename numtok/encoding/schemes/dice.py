"""GPT with DICE: the tokens of ``numgpt``, and the whole number goes in by its angle."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._mantissa import MantissaScheme
from numtok.registry import Interval


@dataclass(frozen=True)
class DiceScheme(MantissaScheme):
    """The baseline of NumGPT's Table 1: NumGPT with the embedder ``dice`` (Sundararaman et al.
    2020) in place of its own. Tokens, channel and head are those of ``numgpt``.

    exponents
        As in ``numgpt``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Table 1"
    embedder: ClassVar[str] = "dice"
    head: ClassVar[str] = "numgpt"
    same_tokens_as: ClassVar[str] = "numgpt"
    digest: ClassVar[str] = "10d1ab04342d9172"

    exponents: Interval = Interval(-8, 12)
