"""Numbers with a bounded number of digits, as a state machine of a tokenizer's tokens.

A language model that is restricted to these tokens generates a well-formed number.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

from numtok.encoding.numeral_states import (
    BEGIN,
    CHARACTERS,
    DIGITS,
    EXPONENTS,
    FOLLOWS,
    SIGNS,
    WHOLE,
    steps_of,
)
from numtok.errors import UsageError

_LARGEST = 100  # digits, since each count is a state
_STEPS = steps_of({BEGIN: FOLLOWS[""] | {" ": ""}} | FOLLOWS, ())
_OF_NUMERALS = frozenset(CHARACTERS)


class State(NamedTuple):
    """Progress of a number, character by character.

    numeral
        State in ``encoding.numeral_states``.
    digits, decimals
        Number of digits before and after the point. Without a maximum they are counted only up to
        the minimum, so that the number of states is finite.
    """

    numeral: str
    digits: int = 0
    decimals: int = 0


@dataclass(frozen=True, kw_only=True)
class NumberPattern:
    """The numbers that may be written, possibly after one space.

    min_digits, max_digits
        Number of digits before the decimal point; ``None`` is unlimited. With a minimum of 0,
        numbers may begin with the point (``.5``).
    min_decimals, max_decimals
        Number of digits after the decimal point. 0 decimals are written without a point.
    signs
        Allowed signs, of ``+``, ``-`` and U+2212; every number may also be without a sign.
    groups, exponent, percent
        Allow commas between groups of thousands (``1,234``), an exponent (``1e5``), and a percent
        sign.

    Raises UsageError for a minimum above the maximum, or for another sign.
    """

    min_digits: int = 1
    max_digits: int | None = None
    min_decimals: int = 0
    max_decimals: int | None = None
    signs: str = "-"
    groups: bool = False
    exponent: bool = False
    percent: bool = False

    def __post_init__(self) -> None:
        for name in ("digits", "decimals"):
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if not 0 <= least <= (_LARGEST if most is None else most) <= _LARGEST:
                raise UsageError(
                    f"min_{name} and max_{name} must be from 0 to {_LARGEST}, the minimum first "
                    f"(got {least} and {most})"
                )
        if self.max_digits == self.max_decimals == 0:
            raise UsageError("max_digits and max_decimals cannot both be 0. Allow some digits")
        if set(self.signs) - set(SIGNS):
            raise UsageError(
                f"signs must consist of '+', '-' and U+2212 (got {self.signs!r}). Pass '' for none"
            )

    @property
    def longest(self) -> int | None:
        """Largest number of characters of a number, with a space before it; None if unlimited."""
        if self.max_digits is None or self.max_decimals is None or self.exponent:
            return None
        commas = max(0, self.max_digits - 1) // 3 * self.groups
        whole = 1 + bool(self.signs) + self.max_digits + commas
        return whole + (self.max_decimals + 1 if self.max_decimals else 0) + self.percent

    def step(self, state: State, character: str) -> State | None:
        """Return the state after one more character; None if the character is not allowed."""
        numeral = _STEPS[state.numeral].get(character)
        if numeral is None or character in self._excluded:
            return None
        if numeral == "sign" and character not in self.signs:
            return None
        digits: int | None = state.digits
        decimals: int | None = state.decimals
        if character in DIGITS and numeral == "fraction":
            decimals = _counted(state.decimals, self.min_decimals, self.max_decimals)
        elif character in DIGITS and numeral != "exponent":
            digits = _counted(state.digits, self.min_digits, self.max_digits)
        elif character in ".eE":  # no more digits before it, so their number no longer matters
            digits = self.min_digits if state.digits >= self.min_digits else None
            if character != ".":
                decimals = self.min_decimals if state.decimals >= self.min_decimals else None
        if digits is None or decimals is None:
            return None
        return State(numeral, digits, decimals)

    def read(self, state: State, text: str) -> State | None:
        """Return the state after some text; None if the text is not allowed."""
        reached: State | None = state
        for character in text:
            if reached is None:
                return None
            reached = self.step(reached, character)
        return reached

    @cached_property
    def _excluded(self) -> str:
        """Characters that no number of the pattern has."""
        excluded = "" if self.groups else ","
        excluded += "" if self.exponent else EXPONENTS
        excluded += "" if self.percent else "%"
        return excluded + ("." if self.max_decimals == 0 else "")

    def may_end(self, state: State) -> bool:
        """Return whether a number may end in a state."""
        is_long_enough = state.digits >= self.min_digits and state.decimals >= self.min_decimals
        return is_long_enough and state.numeral in WHOLE


def _counted(count: int, least: int, most: int | None) -> int | None:
    """Return the number of digits after one more; None if that is one too many."""
    if most is None:
        return min(count + 1, least)
    return count + 1 if count < most else None


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The states of a number that is written token by token; 0 is the first.

    after
        By state: the tokens that may come next, and the state after each. Every token can still
        lead to a complete number.
    may_end
        By state: whether the number may end.
    """

    after: Sequence[Mapping[int, int]]
    may_end: Sequence[bool]

    @classmethod
    def of(cls, pattern: NumberPattern, texts: Sequence[str | None]) -> Self:
        """Build the states for the texts of all tokens by id.

        Raises UsageError if no sequence of tokens spells a number of the pattern.

        >>> states = TokenStates.of(NumberPattern(max_digits=2), ["1", "25", " 3", "x", "."])
        >>> sorted(states.after[0]), states.after[states.after[0][1]], states.may_end
        ([0, 1, 2], {4: 3}, [False, True, True, False, True])
        """
        tokens = defaultdict(list)  # by text: models may have several tokens of one text
        for token, text in enumerate(texts):
            if text and set(text[1:]) <= _OF_NUMERALS and text[0] in _OF_NUMERALS | {" "}:
                tokens[text].append(token)
        states = [State(BEGIN)]
        index = {states[0]: 0}
        edges: list[list[tuple[str, int]]] = []
        for state in states:  # grows
            edges.append([])
            for text in tokens:
                if (reached := pattern.read(state, text)) is not None:
                    if reached not in index:
                        index[reached] = len(states)
                        states.append(reached)
                    edges[-1].append((text, index[reached]))
        may_end = [pattern.may_end(state) for state in states]
        ending = _ending(edges, may_end)
        if 0 not in ending:
            raise UsageError(
                "the tokenizer cannot write a number with these digits and decimals. Allow more, "
                "or use a tokenizer that has a token for each digit"
            )
        after = [
            {token: to for text, to in leaving if to in ending for token in tokens[text]}
            for leaving in edges
        ]
        return cls(after, may_end)


def _ending(edges: Sequence[Sequence[tuple[str, int]]], may_end: Sequence[bool]) -> set[int]:
    """Return the states from which the end of a number can be reached."""
    before = defaultdict(set)
    for state, leaving in enumerate(edges):
        for _, to in leaving:
            before[to].add(state)
    found = {state for state, ends in enumerate(may_end) if ends}
    waiting = [*found]
    while waiting:
        more = before[waiting.pop()] - found
        found |= more
        waiting += more
    return found
