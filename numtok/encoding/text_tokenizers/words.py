"""words: whole words with byte fallback, the default."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.encoding.text_tokenizers._words import WordTable, frequent_words, words_of
from numtok.encoding.text_tokenizers.base import Pieces, TextTokenizer
from numtok.errors import UsageError


@dataclass(frozen=True)
class FrequentWords(TextTokenizer):
    """The most frequent words of the sample, after the 256 bytes.

    size
        The most words to keep; words seen once are left out.
    """

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "e7fa716241990c56"
    positional: ClassVar[str] = "size"
    size: int = 8192

    def __post_init__(self) -> None:
        if not 0 <= self.size <= 1_000_000:
            raise UsageError(f"words: size={self.size} is not possible; allowed are 0 to 1000000")

    @property
    def needs_sample(self) -> bool:
        return True

    def fit(self, sample: Pieces) -> WordTable:
        return WordTable(frequent_words(sample, self.size, keys=False))

    def load(self, state: dict[str, Any]) -> WordTable:
        return WordTable(words_of(state))
