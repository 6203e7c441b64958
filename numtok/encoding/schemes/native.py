"""native: numbers as the text tokenizer splits them. `` is 12.5 kg`` -> `` is``, `` 12 . 5``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Bools
from numtok.encoding.numeral_states import (
    BEGIN,
    BROKEN,
    CHARACTERS,
    FOLLOWS,
    WHOLE,
    reached,
    steps_of,
)
from numtok.encoding.schemes._literals import LiteralScheme, spell, with_extras
from numtok.encoding.schemes.base import Encoded, Next, SchemeDefaults, outcomes_of
from numtok.encoding.text_tokenizers.base import FittedTokenizer
from numtok.encoding.texts import Texts
from numtok.encoding.whole_text import Parted, TextScheme
from numtok.numerals.column import Numerals
from numtok.numerals.literals import value_of

#: States in which a numeral may end, possibly before its last character: the point of ``12.`` may
#: end a sentence.
_MAY_STOP = WHOLE | {"point", "comma", "e"}


@dataclass(frozen=True)
class Native(LiteralScheme, TextScheme):
    """Numbers as a language model tokenizes them: the text tokenizer splits the whole text, and a
    number consists of the tokens that contain at least one of its characters.

    Numbers have no tokens of their own, and a token may cross the boundary of a number: GPT-2 puts
    the preceding space into the first token. An answer always begins with a new token, as it would
    if a model received the preceding text as its prompt. Numbers are not normalized.

    A model may predict a number with any tokens that spell a numeral. The first token may also
    contain preceding text. The number ends before the first token that cannot continue it; a
    trailing point, comma or e is not part of it. Characters that are split across tokens, such as
    U+2212, are decoded but never predicted.

    Without a text tokenizer, numbers are written character by character.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "language models; Radford et al. (2019)"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.20", "- 6 0 . 2 0", "-60.20"),
        ("1e400", "1 e 4 0 0", "1e400"),
        ("\u22121,234%", "\u2212 1 , 2 3 4 %", "\u22121,234%"),
    )
    digest: ClassVar[str] = "5a634c1c78cca40a"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(same_tokens_as="digits")

    text: FittedTokenizer | None = field(default=None, init=False, repr=False)

    @property
    def pieces(self) -> tuple[str, ...]:
        return tuple(CHARACTERS)

    def vocabulary(self) -> tuple[str, ...]:
        return super().vocabulary() if self.text is None else self._words

    @cached_property
    def _words(self) -> tuple[str, ...]:
        assert self.text is not None
        return tuple(self.text.vocabulary())

    @property
    def _bytes(self) -> list[bytes]:
        assert self.text is not None
        return self.text.token_bytes

    def encode(self, numerals: Numerals) -> Encoded:
        """Encode numbers that are not part of a text."""
        if self.text is None:
            spelt = spell(numerals)
            return with_extras(spelt.characters.astype(np.uint32), *spelt[1:], len(self.pieces))
        literals = [numerals.literals.at(index) for index in range(len(numerals))]
        runs = self.text.encode(Texts.of(literals))
        return Encoded(runs.ids, np.diff(runs.bounds), outcomes_of(numerals))

    def number_of(self, tokens: Sequence[int]) -> tuple[str, float | None]:
        if self.text is None:
            return super().number_of(tokens)
        before, literal, after = self.parted(tokens)
        if literal is None:
            return (before + after).decode(errors="replace"), None
        return literal, value_of(literal)

    def parted(self, tokens: Sequence[int]) -> Parted:
        """Split the text of the given tokens into the first numeral, and the bytes before and after
        it."""
        whole = b"".join(self._bytes[token] for token in tokens if token < len(self._bytes))
        # Invalid UTF-8 is never part of a numeral, but must be preserved.
        text = whole.decode(errors="surrogateescape")
        for begin in range(len(text)):
            if longest := _longest(text[begin:]):
                parts = text[:begin], text[begin + longest :]
                before, after = (part.encode(errors="surrogateescape") for part in parts)
                return Parted(before, text[begin : begin + longest], after)
        return Parted(whole, None, b"")

    # --- tokens that a model may predict

    @cached_property
    def own_tokens(self) -> Bools:
        if self.text is None:
            return np.ones(len(self.vocabulary()), np.bool_)
        own = np.zeros(len(self._words), np.bool_)
        for allowed in self._by_state.values():
            own |= allowed
        return own

    def next(self, prefix: tuple[int, ...]) -> Next:
        if self.text is None:
            return super().next(prefix)
        state = BEGIN
        for index, token in enumerate(prefix):
            state = reached(_STEPS, state, self._characters(token, first=not index))
        nothing = np.zeros(len(self._words), np.bool_)
        return Next(self._by_state.get(state, nothing), may_end=state in _MAY_STOP)

    def _characters(self, token: int, first: bool) -> str:
        """Return the text of a token. If the token is the first of a number, text before the number
        is left out."""
        try:
            text = self._bytes[token].decode()
        except UnicodeDecodeError:
            return "?"
        return text.lstrip(_border(text)) if first else text

    @cached_property
    def _by_state(self) -> dict[str, Bools]:
        """Allowed tokens by state, bool[vocabulary]."""
        allowed = {state: np.zeros(len(self._words), np.bool_) for state in (*FOLLOWS, BEGIN)}
        for token in range(len(self._words)):
            if text := self._characters(token, first=False):
                if set(text) <= _OF_NUMERALS:
                    for state in FOLLOWS:
                        allowed[state][token] = reached(_STEPS, state, text) != BROKEN
                begun = self._characters(token, first=True)
                allowed[BEGIN][token] = bool(begun) and reached(_STEPS, BEGIN, begun) != BROKEN
        return allowed


_OF_NUMERALS = frozenset(CHARACTERS)
_STEPS = steps_of(FOLLOWS | {BEGIN: FOLLOWS[""]}, ())


def _longest(text: str) -> int:
    """Return the length of the longest numeral at the beginning of a text; 0 if none."""
    state, longest = "", 0
    for length, character in enumerate(text, 1):
        state = _STEPS[state].get(character, BROKEN)
        if state == BROKEN:
            break
        if state in WHOLE:
            longest = length
    return longest


def _border(text: str) -> str:
    """Return the characters of a token that may precede a number in it. They are neither letters
    nor characters of numerals."""
    return "".join({char for char in text if char not in _OF_NUMERALS and not char.isalnum()})
