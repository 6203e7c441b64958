"""Rules that choose the number of an answer in a generated text."""

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
    r"""Rule that chooses the number of an answer.

    spec
        One of:

        - ``strict``: the whole text, without surrounding space, is the number;
        - ``only-number``: the text contains one number and no other;
        - ``first-number``, ``last-number``;
        - ``boxed``: the last number in the last ``\boxed{...}``;
        - ``after:REGEX``: the first number after the last match of a regular expression.

    >>> AnswerRule.parse("after:####").region("6 x 3 #### 18")
    ' 18'
    """

    spec: str
    pattern: "re.Pattern[str] | None" = None

    @classmethod
    def parse(cls, spec: str) -> "AnswerRule":
        """Return the rule of a spec. Raises UsageError if it is unknown, or its regular expression
        is invalid."""
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
        """True if the text must be the number itself, without markup around it."""
        return self.spec == "strict"

    @property
    def chosen(self) -> Literal["only", "first", "last"]:
        """Which number of the region is the answer."""
        if self.spec in ("strict", "only-number"):
            return "only"
        return "first" if self.pattern is not None or self.spec == "first-number" else "last"

    def region(self, text: str) -> str | None:
        """Return the part of a text in which the answer is; None if the text has no such part."""
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
    return text[start + 1 :]  # cut off by a limit of tokens
