"""Patterns of numbers, as state machines over characters and over a tokenizer's tokens.

A language model writes a well-formed number if it is restricted to the tokens that are allowed in
each state.
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

_LARGEST = 100  # largest limit of digits, because each digit count is a separate state
_STEPS = steps_of({BEGIN: FOLLOWS[""] | {" ": ""}} | FOLLOWS, ())
_OF_NUMERALS = frozenset(CHARACTERS)


class State(NamedTuple):
    """State of a number that is read character by character.

    numeral
        Name of the numeral's state, as in :mod:`numtok.encoding.numeral_states`.
    digits, decimals
        Number of digits before and after the decimal point. Without a maximum, digits are
        counted only up to the minimum, so that the number of states is finite.
    """

    numeral: str
    digits: int = 0
    decimals: int = 0


@dataclass(frozen=True, kw_only=True)
class NumberPattern:
    """Pattern of the numbers that may be written; a number may be preceded by one space.

    min_digits, max_digits
        Number of digits before the decimal point; ``None`` means no limit. With a minimum of 0,
        numbers may begin with the point (``.5``).
    min_decimals, max_decimals
        Number of digits after the decimal point. Numbers without decimals have no point.
    signs
        Allowed signs: any of ``+``, ``-`` and U+2212. The sign is always optional.
    groups, exponent, percent
        True to allow commas between groups of thousands (``1,234``), an exponent (``1e5``) and a
        percent sign, respectively.

    Raises UsageError if a minimum exceeds its maximum, or if any other sign is given.
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
        """Maximum length of a number in characters, including a space before it; None if there is
        no limit."""
        if self.max_digits is None or self.max_decimals is None or self.exponent:
            return None
        commas = max(0, self.max_digits - 1) // 3 * self.groups
        whole = 1 + bool(self.signs) + self.max_digits + commas
        return whole + (self.max_decimals + 1 if self.max_decimals else 0) + self.percent

    def step(self, state: State, character: str) -> State | None:
        """Return the state after one more character, or None if the character is not allowed."""
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
        elif (
            character in ".eE"
        ):  # the digits before it are complete, so their count no longer matters
            digits = self.min_digits if state.digits >= self.min_digits else None
            if character != ".":
                decimals = self.min_decimals if state.decimals >= self.min_decimals else None
        if digits is None or decimals is None:
            return None
        return State(numeral, digits, decimals)

    def read(self, state: State, text: str) -> State | None:
        """Return the state after reading ``text``, or None if the text is not allowed."""
        reached: State | None = state
        for character in text:
            if reached is None:
                return None
            reached = self.step(reached, character)
        return reached

    @cached_property
    def _excluded(self) -> str:
        """Characters that may not occur in numbers, although numerals can contain them."""
        excluded = "" if self.groups else ","
        excluded += "" if self.exponent else EXPONENTS
        excluded += "" if self.percent else "%"
        return excluded + ("." if self.max_decimals == 0 else "")

    def may_end(self, state: State) -> bool:
        """Return whether a number may end in the given state."""
        is_long_enough = state.digits >= self.min_digits and state.decimals >= self.min_decimals
        return is_long_enough and state.numeral in WHOLE


def _counted(count: int, least: int, most: int | None) -> int | None:
    """Return the digit count after one more digit, or None if it exceeds the maximum ``most``.

    If ``most`` is None, the count stops at the minimum ``least``.
    """
    if most is None:
        return min(count + 1, least)
    return count + 1 if count < most else None


@dataclass(frozen=True, eq=False)
class TokenStates:
    """State machine of numbers that are written token by token. States are indices; writing starts
    in state 0.

    after
        For each state, the tokens that may come next, each mapped to the state after it. A complete
        number can be reached after each of these tokens.
    may_end
        True for each state in which the number may end.
    """

    after: Sequence[Mapping[int, int]]
    may_end: Sequence[bool]

    @classmethod
    def of(cls, pattern: NumberPattern, texts: Sequence[str | None]) -> Self:
        """Build the states from a pattern and the text of each token, indexed by token id (None for
        tokens without text).

        Raises UsageError if no sequence of tokens spells a number that matches the pattern.

        >>> states = TokenStates.of(NumberPattern(max_digits=2), ["1", "25", " 3", "x", "."])
        >>> sorted(states.after[0]), states.after[states.after[0][1]], states.may_end
        ([0, 1, 2], {4: 3}, [False, True, True, False, True])
        """
        tokens = defaultdict(list)  # by text, because several tokens may have the same text
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
