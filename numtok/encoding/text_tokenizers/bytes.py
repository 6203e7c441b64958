"""bytes: one token per byte of the text."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.encoding.text_tokenizers._words import WordTable
from numtok.encoding.text_tokenizers.base import TextTokenizer
from numtok.encoding.texts import Texts


@dataclass(frozen=True)
class Bytes(TextTokenizer):
    """One token per byte, without fitting. This gives the smallest vocabulary (256 tokens) and the
    longest sequences."""

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = False
    digest: ClassVar[str] = "2e333711677c4edb"

    def fit(self, sample: Texts) -> WordTable:
        return WordTable(())

    def load(self, state: dict[str, Any]) -> WordTable:
        return WordTable(())
