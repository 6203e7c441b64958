"""Reads the answer in each generated text of a column, by a rule and under a numeral policy."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from numtok.numerals.answers.markup import without_markup
from numtok.numerals.answers.rules import AnswerRule
from numtok.numerals.find import find
from numtok.numerals.policy import NumeralPolicy

#: Numeral policy of answers: 1,234 is one number.
POLICY = NumeralPolicy(thousands=True)
_BYTES = 1 << 24  # size of texts after which a scan begins, so that offsets fit into 32 bits
_GROUPS = re.compile("(,0)+")


def read_answers(
    texts: Iterable[str | None], rule: AnswerRule, policy: NumeralPolicy = POLICY
) -> list[str | None]:
    """Return the answer in each text as a literal, or None if the text is missing or contains no
    answer.

    A literal is in the notation of the scanner; ``policy`` defines what counts as a number. Unless
    the rule is ``strict``, :func:`~numtok.numerals.answers.markup.without_markup` is applied to
    texts first.

    >>> texts = ["The answer is **1,234**.", "It is 7:30; the sum is 47", "unknown", None]
    >>> read_answers(texts, AnswerRule.parse("last-number"))
    ['1,234', '47', None, None]
    >>> read_answers(["12", " 12.0 ", "12 apples"], AnswerRule.parse("strict"))
    ['12', '12.0', None]
    """
    literals: list[str | None] = []
    part: list[bytes] = []
    size = 0
    for text in texts:
        region = None if text is None else rule.region(text)
        plain = "" if region is None else region if rule.is_strict else without_markup(region)
        part.append(plain.encode())
        size += len(part[-1])
        if size > _BYTES:
            literals += _chosen(part, rule, policy)
            part, size = [], 0
    return [*literals, *_chosen(part, rule, policy)]


def _chosen(
    regions: Sequence[bytes], rule: AnswerRule, policy: NumeralPolicy
) -> Iterator[str | None]:
    """Yield the literal that the rule chooses in each region."""
    rows = np.zeros(len(regions) + 1, np.int32)
    np.cumsum([len(region) for region in regions], out=rows[1:])
    data = np.frombuffer(b"".join(regions), np.uint8)
    starts, ends, counts, written = find(data, rows, policy)
    next_first = np.cumsum(counts)  # index of the first number of the next region
    for row, (count, stop) in enumerate(zip(counts.tolist(), next_first.tolist(), strict=True)):
        index = stop - count if rule.chosen == "first" else stop - 1
        found = count == 1 if rule.chosen == "only" else count > 0
        if found and rule.is_strict:
            found = (starts[index], ends[index]) == (rows[row], rows[row + 1])
        yield written.at(index) if found else None


def same_form(first: str, second: str) -> bool:
    """Return whether two literals have the same form: both with or both without decimals, group
    commas, an exponent, a percent sign and a plus sign. Minus signs and the number of digits may
    differ.

    >>> same_form("129657", "-7"), same_form("129657", "129657.00"), same_form("1,234", "1234")
    (True, False, False)
    """
    return _form(first) == _form(second)


def _form(literal: str) -> str:
    unsigned = literal.lstrip("-\u2212").lower().replace("e-", "e").replace("e+", "e")
    return _GROUPS.sub(",0", re.sub("[0-9]+", "0", unsigned))
