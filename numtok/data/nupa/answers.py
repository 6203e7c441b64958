"""Answers of NUPA as texts (Yang et al. 2025): what is taken for the answer, and its digits.

An answer is an integer ``123``, a float ``10.4``, a fraction ``7/13`` or a number in scientific
notation ``1.23e4``; what the true one is written as says which. Its *parts* are the digits before
the point, those behind it and those of the exponent, or numerator and denominator.
"""

import re
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from numtok.data.nupa.keys import FLOAT, INTEGER, SCIENTIFIC
from numtok.data.nupa.wording import FORMS

#: How an answer is found in what was generated:
#:
#: - ``published``, as the benchmark's code: of what was generated what stands at its start and has
#:   the form of the true answer. The rest is ignored, so 12.5 counts as the integer 12; signs are
#:   left out, so 1.5e-3 counts as 1.5e3. (That code looks behind the first ``" = "`` because its
#:   texts have the question before the answer: that one is the question's.)
#: - ``published-chat``: the same behind ``The answer is``, or of all where that is not said, as for
#:   models that were asked to say so.
#: - ``strict``: all that was generated, but for space around it, has that form; a minus counts.
RULES = ("published", "published-chat", "strict")
_SAID = "The answer is"
# Each with groups for its parts; digits are ASCII.
_FORMS = [
    re.compile(form)
    for form in (
        "([0-9]+)",
        r"([0-9]+)\.([0-9]+)",
        "([0-9]+)/([0-9]+)",
        r"([0-9]+)\.([0-9]+)[eE][+-]?([0-9]+)",
    )
]
_WITH_DECIMALS = (1, 3)  # of the forms
_LONGEST, _LONGEST_EXPONENT = 4000, 4  # characters of a number that is worked out


class Score(NamedTuple):
    """One answer.

    valid
        There was an answer of the form of the true one.
    exact, equal
        All parts are the same strings; both are the same number.
    digit_match
        The share of the true digits that stand at their place.
    d_length, d_length_parts
        How many digits more or fewer there are in all; in each part by itself, summed.
    """

    valid: bool
    exact: bool
    equal: bool
    digit_match: float
    d_length: int
    d_length_parts: int


def score(truth: str, generated: str | None, rule: str) -> Score:
    """Score what was generated, None for nothing.

    >>> score("10.5", "1.25 or so", "published")  # the decimals are matched in their order
    Score(valid=True, exact=False, equal=False, digit_match=0.0, d_length=0, d_length_parts=2)
    >>> score("10.5", "1.25 or so", "strict")
    Score(valid=False, exact=False, equal=False, digit_match=0.0, d_length=3, d_length_parts=3)

    A truth that has none of the forms, such as -5 or a word, is compared as a whole, and no digit
    of another text matches:

    >>> score("-5", "-5 ", "strict")
    Score(valid=True, exact=True, equal=True, digit_match=1.0, d_length=0, d_length_parts=0)
    """
    if (known := _form(truth)) is None:
        return _score_of_text(truth, generated, rule)
    form, parts = known
    digits = sum(map(len, parts))
    find = _FORMS[form].fullmatch if rule == "strict" else _FORMS[form].match
    found = None if generated is None else find(_looked_at(generated, rule))
    if found is None:
        return _score_of_whole(False, False, digits)
    got, signs = found.groups(), "" if rule == "strict" else "[+-]"
    exact = got == parts and (rule != "strict" or ("-" in found[0]) == ("-" in truth))
    lengths = [len(one) - len(other) for one, other in zip(got, parts, strict=True)]
    return Score(
        valid=True,
        exact=exact,
        equal=exact or _are_equal(*(re.sub(signs, "", one) for one in (truth, found[0]))),
        digit_match=_matched(form, got, parts) / digits,
        d_length=abs(sum(lengths)),
        d_length_parts=sum(map(abs, lengths)),
    )


@lru_cache(maxsize=1 << 10)
def _form(truth: str) -> tuple[int, tuple[str, ...]] | None:
    """Which form the true answer has, and its parts."""
    for form, pattern in enumerate(_FORMS):
        if match := pattern.fullmatch(truth):
            return form, match.groups()
    return None


def _score_of_text(truth: str, generated: str | None, rule: str) -> Score:
    got = "" if generated is None else _looked_at(generated, rule)
    off = abs(sum(map(str.isdigit, got)) - sum(map(str.isdigit, truth)))
    return _score_of_whole(bool(got), got == truth.strip(), off)


def _score_of_whole(valid: bool, same: bool, off: int) -> Score:
    """Score an answer whose parts cannot be compared; ``off`` is the difference in digits."""
    match = float(same)
    return Score(
        valid=valid, exact=same, equal=same, digit_match=match, d_length=off, d_length_parts=off
    )


def _looked_at(generated: str, rule: str) -> str:
    """What the rule looks at, without the space around it."""
    if rule == "published-chat":
        _, said, behind = generated.partition(_SAID)
        generated = behind if said else generated
    return generated.strip()


def _matched(form: int, got: tuple[str, ...], parts: tuple[str, ...]) -> int:
    """How many digits are the same, decimals from the left and all others from the right."""
    count = 0
    for place, (one, other) in enumerate(zip(got, parts, strict=True)):
        from_the_left = form in _WITH_DECIMALS and place == 1
        sides = (one, other) if from_the_left else (one[::-1], other[::-1])
        count += sum(a == b for a, b in zip(*sides, strict=False))  # what hangs over is no match
    return count


def _are_equal(truth: str, text: str) -> bool:
    """Whether two answers are the same number; one too long to be worked out is another one."""
    exponent = text.lower().partition("e")[2]
    if max(len(truth), len(text)) > _LONGEST or len(exponent) > _LONGEST_EXPONENT:
        return False
    _, bar, denominator = text.partition("/")
    if bar and not int(denominator):
        return False
    return Fraction(truth) == Fraction(text)


def in_notation(truth: str, said: str | None, digits: int = 0) -> str | None:
    """A predicted number in the notation of the true one, where it has another: schemes that write
    values know of none. An integer stands for the values nearest to it. A truth that is no number
    of NUPA leaves it as it is.

    digits
        How many significant ones the prediction has at most; 0: all that are there.

    >>> in_notation("1.23e4", "12500.0"), in_notation("12", "12.0"), in_notation("12", "12.7")
    ('1.25e4', '12', '13')
    >>> in_notation("52.3", "52.29999923706055", 7)
    '52.3'
    """
    forms = (one for one in (INTEGER, FLOAT, SCIENTIFIC) if re.fullmatch(FORMS[one], truth))
    form = next(forms, None)
    if said is None or form is None or (not digits and re.fullmatch(FORMS[form], said)):
        return said
    try:
        value = Decimal(said)
    except InvalidOperation:
        return said
    if not value.is_finite() or abs(value.adjusted()) > 1000:
        return said
    if digits:
        value = Context(prec=digits).plus(value)
    if form == INTEGER:
        return f"{value.to_integral_value() or Decimal(0):.0f}"
    written = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if form == SCIENTIFIC:
        return f"{sign}{written[0]}.{written[1:] or '0'}e{value.adjusted() if value else 0}"
    whole, _, decimals = f"{value:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"
