"""digits: a number character by character, exactly as written. ``-60.2`` -> ``- 6 0 . 2``."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.declaration import setting
from numtok.encoding.schemes._digits import DigitTokens

_LONGEST = 3  # of a chunk
_MOST = 1000  # zeros that are put before a number, at most


@dataclass(frozen=True)
class DigitsScheme(DigitTokens):
    """One token a character of the literal, with any number of digits: nothing is lost.

    Lengths vary, so the number of masks of a masked number tells how long it is; the xVal paper
    (Appendix B.3) shows models that exploit this.

    chunk
        Digits of a token, 1 to 3, counted from the point: ``1234.5678`` is ``1 234 . 567 8`` with
        3, and every run of other digits (an exponent, groups of thousands) is cut from its right
        (Singh and Strouse 2024).
    reverse
        Whether the last digits of a run come first: ``-60.25`` is ``- 0 6 . 5 2`` and the example
        above ``234 1 . 8 567``. A run ends at a sign, point, comma or letter.
    pad
        To how many digits whole numbers, and what stands before a point, are filled up with zeros
        on the left. Longer ones stay as they are, and so do those with groups of thousands. Of a
        number of just so many digits the zeros that begin it are left out as it is read back, its
        own too.
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
