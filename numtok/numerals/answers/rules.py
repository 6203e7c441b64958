"""Rules that choose which number in a generated text is the answer."""

import re
from dataclasses import dataclass
from typing import Literal

from numtok.errors import UsageError, unknown

#: Rules that need no pattern.
RULES = ("strict", "only-number", "first-number", "last-number", "boxed")
_AFTER = "after:"
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*")


@dataclass(frozen=True)
class AnswerRule:
    r"""Rule that chooses which number in a generated text is the answer.

    spec
        One of:

        - ``strict``: the whole text, if it is a number (surrounding space is ignored);
        - ``only-number``: the number in a text that contains exactly one;
        - ``first-number``, ``last-number``: the first or last number in the text;
        - ``boxed``: the last number in the last ``\boxed{...}``;
        - ``after:REGEX``: the first number after the last match of a regular expression.
    pattern
        The compiled regular expression of ``after:REGEX``; None for other rules.

    >>> AnswerRule.parse("after:####").region("6 x 3 #### 18")
    ' 18'
    """

    spec: str
    pattern: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, spec: str) -> "AnswerRule":
        """Build a rule from its spec. Raises UsageError if the spec is unknown or its regular
        expression is invalid."""
        if spec in RULES:
            return cls(spec)
        if not spec.startswith(_AFTER):
            raise unknown("rule", spec, [*RULES, f"{_AFTER}REGEX"])
        expression = spec.removeprefix(_AFTER)
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise UsageError(
                f"--rule {spec!r} is not a regular expression ({error}). Escape special "
                r"characters, as in 'after:\$'"
            ) from None
        if not expression:
            raise UsageError(f"--rule {spec!r} needs a regular expression, as in 'after:####'")
        return cls(spec, pattern)

    @property
    def is_strict(self) -> bool:
        """True if the whole text must be the number, without markup around it."""
        return self.spec == "strict"

    @property
    def chosen(self) -> Literal["only", "first", "last"]:
        """Position of the answer among the numbers in the part of the text that :meth:`region`
        returns."""
        if self.spec in ("strict", "only-number"):
            return "only"
        return "first" if self.pattern is not None or self.spec == "first-number" else "last"

    def region(self, text: str) -> str | None:
        """Return the part of a text that may contain the answer, or None if it has no such part."""
        if self.is_strict:
            return text.strip()
        if self.spec == "boxed":
            return _boxed(text)
        if self.pattern is None:
            return text
        end = None
        for match in self.pattern.finditer(text):
            end = match.end()
        return None if end is None else text[end:]


def _boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed`` in a text, with or without braces.

    >>> _boxed(r"so \boxed{x = \frac{1}{2}}."), _boxed(r"\boxed 7 km"), _boxed("7")
    ('x = \\frac{1}{2}', '7', None)
    """
    start = None
    for match in _BOXED.finditer(text):
        start = match.end()
    if start is None:
        return None
    if not text.startswith("{", start):
        return next(iter(text[start:].split()), "")
    depth = 0
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start + 1 : start + brace.start()]
    return text[start + 1 :]  # no closing brace, because generation ended at the token limit
