"""native: numbers left to the tokenizer of the text. `` is 12.5 kg`` -> `` is``, `` 12 . 5`` ..."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Bools
from numtok.encoding.schemes._literals import (
    BEGIN,
    BROKEN,
    CHARACTERS,
    FOLLOWS,
    WHOLE,
    LiteralScheme,
    reached,
    spell,
    steps_of,
    with_extras,
)
from numtok.encoding.schemes.base import Encoded, Next, SchemeDefaults, outcomes_of
from numtok.encoding.text_tokenizers.base import FittedTokenizer
from numtok.encoding.texts import Texts
from numtok.encoding.whole_text import Parted, TextScheme
from numtok.numerals.column import Numerals
from numtok.numerals.literals import value_of

#: States in which a numeral has ended but for one character: of ``12.`` the point ends a sentence.
_MAY_STOP = WHOLE | {"point", "comma", "e"}


@dataclass(frozen=True)
class Native(LiteralScheme, TextScheme):
    """What a language model makes of numbers by itself: the text is cut into tokens as a whole, and
    a number is the tokens that have some of its characters in them.

    So the ids are those of the tokenizer for the text, and a token may reach over the border of a
    number: with GPT-2's, the space before it is in its first token. Numbers have no tokens of their
    own. A token begins where an answer does, as it does for a model that is given the text before.
    Normalisation there is none: numbers stay as they are written.

    A model says a number in any tokens that write a numeral, behind the text that may share the
    first. It ends with the first token that cannot go on with it; a point, comma or e that nothing
    follows is none of it. Characters cut into parts of tokens, as U+2212 may be, are read, and not
    said.

    Without a text, numbers stand alone, in their characters.
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
        """Of numbers that stand alone."""
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
        """The numeral that some tokens of a text write, the first of all that could begin there."""
        whole = b"".join(self._bytes[token] for token in tokens if token < len(self._bytes))
        # Bytes that are no text are no part of a numeral, but have their place.
        text = whole.decode(errors="surrogateescape")
        for begin in range(len(text)):
            if longest := _longest(text[begin:]):
                parts = text[:begin], text[begin + longest :]
                before, after = (one.encode(errors="surrogateescape") for one in parts)
                return Parted(before, text[begin : begin + longest], after)
        return Parted(whole, None, b"")

    # --- what a model may say

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
        for place, token in enumerate(prefix):
            state = reached(_STEPS, state, self._characters(token, first=not place))
        nothing = np.zeros(len(self._words), np.bool_)
        return Next(self._by_state.get(state, nothing), may_end=state in _MAY_STOP)

    def _characters(self, token: int, first: bool) -> str:
        """Those of a numeral; of a first token without the text that it shares."""
        try:
            text = self._bytes[token].decode()
        except UnicodeDecodeError:
            return "?"
        return text.lstrip(_border(text)) if first else text

    @cached_property
    def _by_state(self) -> dict[str, Bools]:
        """By state, bool[vocabulary]: the tokens that may follow."""
        found = {state: np.zeros(len(self._words), np.bool_) for state in (*FOLLOWS, BEGIN)}
        for token in range(len(self._words)):
            if text := self._characters(token, first=False):
                if set(text) <= _OF_NUMERALS:
                    for state in FOLLOWS:
                        found[state][token] = reached(_STEPS, state, text) != BROKEN
                begun = self._characters(token, first=True)
                found[BEGIN][token] = bool(begun) and reached(_STEPS, BEGIN, begun) != BROKEN
        return found


_OF_NUMERALS = frozenset(CHARACTERS)
_STEPS = steps_of(FOLLOWS | {BEGIN: FOLLOWS[""]}, ())


def _longest(text: str) -> int:
    """How many characters the longest numeral has with which a text begins; 0 for none."""
    state, longest = "", 0
    for place, character in enumerate(text, 1):
        state = _STEPS[state].get(character, BROKEN)
        if state == BROKEN:
            break
        if state in WHOLE:
            longest = place
    return longest


def _border(text: str) -> str:
    """The characters of a token before its first one that a numeral may have: text beside a number,
    which has no letter or digit of its own there."""
    return "".join({one for one in text if one not in _OF_NUMERALS and not one.isalnum()})
