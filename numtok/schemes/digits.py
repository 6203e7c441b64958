"""digits: a number character by character, exactly as written. ``-60.2`` -> ``- 6 0 . 2``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.numerals.column import Numerals
from numtok.schemes._literals import CHARACTERS, LiteralScheme, spell, with_extras
from numtok.schemes.base import Encoded


@dataclass(frozen=True)
class Digits(LiteralScheme):
    """One token a character of the literal, with any number of digits: nothing is lost.

    Lengths vary, so the number of masks of a masked number tells how long it is; the xVal paper
    (Appendix B.3) shows models that exploit this.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.20", "- 6 0 . 2 0", "-60.20"),
        ("1e400", "1 e 4 0 0", "1e400"),
        ("007", "0 0 7", "007"),
        ("\u22121,234%", "\u2212 1 , 2 3 4 %", "\u22121,234%"),
    )
    digest: ClassVar[str] = "5a634c1c78cca40a"

    @property
    def pieces(self) -> tuple[str, ...]:
        return tuple(CHARACTERS)

    def encode(self, numerals: Numerals) -> Encoded:
        characters, lengths, outcomes = spell(numerals)
        return with_extras(characters.astype(np.uint32), lengths, outcomes, self.counted)
