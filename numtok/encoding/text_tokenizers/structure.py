"""structure: words, among them the keys of JSON-like text: ``'key': `` is one token."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numtok.declaration import setting
from numtok.encoding.text_tokenizers._words import WordTable, frequent_words, words_of
from numtok.encoding.text_tokenizers.base import TextTokenizer
from numtok.encoding.texts import Texts


@dataclass(frozen=True)
class Structure(TextTokenizer):
    """As ``words``, and a quoted key with its colon is one word: the structure tokens of xVal's
    public code, where brackets and commas between them are words too.

    A key is made of letters, digits and ``_ - . /`` and spaces, within either kind of quotes. The
    space behind the colon belongs to it, unless a word follows, which takes the space itself.

    ``{'planet0': {'m': 2.4, 'a': 3}}`` -> ``{``, ``'planet0': ``, ``{``, ``'m': ``, a number,
    ``, ``, ``'a': ``, a number, ``}}``: seven tokens of text, where ``words`` has nine.

    size
        The most words to keep; words seen once are left out.
    """

    revision: ClassVar[int] = 1
    needs_sample: ClassVar[bool] = True
    digest: ClassVar[str] = "6594d3b02cd96a22"
    positional: ClassVar[str] = "size"
    size: int = setting(8192, at_least=0, at_most=1_000_000)

    def fit(self, sample: Texts) -> WordTable:
        return WordTable(frequent_words(sample, self.size, keys=True), keys=True)

    def load(self, state: dict[str, Any]) -> WordTable:
        return WordTable(words_of(state), keys=True)
