"""digits: one token per character, exactly as the number is written. ``-60.2`` -> ``- 6 0 . 2``."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.declaration import setting
from numtok.encoding.schemes._digits import DigitTokens

_LONGEST = 3  # digits per chunk
_MOST = 1000  # leading zeros


@dataclass(frozen=True)
class DigitsScheme(DigitTokens):
    """One token per character of the literal, with any number of digits. The scheme is lossless.

    Lengths vary, so the number of mask tokens reveals the length of a masked number. The xVal paper
    (Appendix B.3) shows models that exploit this.

    chunk
        Number of digits per token, 1 to 3, counted from the decimal point: with 3, ``1234.5678`` is
        ``1 234 . 567 8``. Other runs of digits (exponents, groups of thousands) are split from the
        right (Singh and Strouse 2024).
    reverse
        Write each run of digits in reverse: ``-60.25`` is ``- 0 6 . 5 2`` and the example above is
        ``234 1 . 8 567``. A run ends at a sign, point, comma or letter.
    pad
        Pad the integer part with leading zeros to this many digits. Longer numbers and numbers with
        group commas are unchanged. Decoding removes the leading zeros of numbers with exactly this
        many digits, including zeros in the original literal.
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
    positional: ClassVar[str] = "chunk"
    chunk: int = setting(1, at_least=1, at_most=_LONGEST)
    reverse: bool = False
    pad: int = setting(0, at_least=0, at_most=_MOST)
