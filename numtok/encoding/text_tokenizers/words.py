"""words: whole words, and single bytes for everything else. This is the default text tokenizer."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.declaration import setting
from numtok.encoding.text_tokenizers._words import WordTable, frequent_words, words_of
from numtok.encoding.text_tokenizers.base import TextTokenizer
from numtok.encoding.texts import Texts


@dataclass(frozen=True)
class FrequentWords(TextTokenizer):
    """One token for each of the 256 bytes and for each of the most frequent words in a sample of
    the train split.

    size
        Maximum number of words. Words that occur only once are dropped.
    """

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = True
    digest: ClassVar[str] = "e7fa716241990c56"
    positional: ClassVar[str] = "size"
    size: int = setting(8192, at_least=0, at_most=1_000_000)

    def fit(self, sample: Texts) -> WordTable:
        return WordTable(frequent_words(sample, self.size, keys=False))

    def load(self, state: dict[str, Any]) -> WordTable:
        return WordTable(words_of(state))
