"""triads: up to three digits per token, counted from the right. ``-1234.5`` -> ``- 1 234 . 5``."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.declaration import setting
from numtok.encoding.schemes._digits import DigitTokens

_CUTS = ("right", "left")


@dataclass(frozen=True)
class TriadsScheme(DigitTokens):
    """Numbers in groups of up to three digits, as large language models tokenize them. There are
    1,110 tokens of one to three digits, including leading zeros. The scheme is lossless. With
    ``right`` it is the same as ``digits:3``.

    cut
        ``right`` splits outward from the decimal point, and exponents from the right:
        ``1 234 567 . 89`` (in Singh and Strouse 2024, models add more accurately this way).
        ``left`` splits each run of digits from the left, ``123 456 7``, like the tokenizer cl100k.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Singh and Strouse (arXiv 2402.14903), Section 2"
    positional: ClassVar[str] = "cut"
    chunk: ClassVar[int] = 3
    reverse: ClassVar[bool] = False
    pad: ClassVar[int] = 0
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("1234567", "1 234 567", "1234567"),
        ("-60.2345", "- 60 . 234 5", "-60.2345"),
        ("1,234%", "1 , 234 %", "1,234%"),
        ("007e-1234", "007 e - 1 234", "007e-1234"),
    )
    digest: ClassVar[str] = "3117870c4e6e6324"
    cut: str = setting("right", choices=_CUTS)

    @property
    def from_left(self) -> bool:
        return self.cut == "left"
