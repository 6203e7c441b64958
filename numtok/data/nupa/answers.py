"""Extract and score answers to NUPA questions (Yang et al. 2025).

An answer must have the form of the target: an integer ``123``, a float ``10.4``, a fraction
``7/13`` or a number in scientific notation ``1.23e4``. Its *parts* are the digits before the point,
after the point and in the exponent, or the numerator and the denominator.
"""

import re
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from numtok.data.nupa.keys import FLOAT, INTEGER, SCIENTIFIC
from numtok.data.nupa.wording import FORMS

#: Rules that extract an answer from a generated text:
#:
#: - ``published``, like the benchmark's code: the longest prefix with the form of the target. The
#:   rest is ignored, so 12.5 counts as the integer 12; signs are ignored, so 1.5e-3 counts as
#:   1.5e3. (That code skips the first ``" = "``, which ends the question in its texts.)
#: - ``published-chat``: the same after ``The answer is`` if the text contains it, for models that
#:   were prompted to write so.
#: - ``strict``: the whole text, without surrounding space, has that form; a minus counts.
RULES = ("published", "published-chat", "strict")
_PREAMBLE = "The answer is"
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
_WITH_DECIMALS = (1, 3)  # forms with decimals
_LONGEST, _LONGEST_EXPONENT = 4000, 4  # maximum characters of a number that is evaluated


class Score(NamedTuple):
    """Score of one answer.

    valid
        True if the text contains an answer in the form of the target.
    exact
        True if the answer and the target are equal part by part, as strings.
    equal
        True if the answer and the target are the same number.
    digit_match
        Fraction of the target's digits that match the answer's digit at the same position.
    d_length, d_length_parts
        Absolute difference in the number of digits: in total, and summed over the parts.
    """

    valid: bool
    exact: bool
    equal: bool
    digit_match: float
    d_length: int
    d_length_parts: int


def score(truth: str, generated: str | None, rule: str) -> Score:
    """Score a generated text against the target with one of the :data:`RULES`.

    ``generated`` is None if the model generated nothing.

    >>> score("10.5", "1.25 or so", "published")  # the decimals are matched in their order
    Score(valid=True, exact=False, equal=False, digit_match=0.0, d_length=0, d_length_parts=2)
    >>> score("10.5", "1.25 or so", "strict")
    Score(valid=False, exact=False, equal=False, digit_match=0.0, d_length=3, d_length_parts=3)

    A target in any other form, such as -5 or a word, is compared as a whole; a different text
    matches none of its digits.

    >>> score("-5", "-5 ", "strict")
    Score(valid=True, exact=True, equal=True, digit_match=1.0, d_length=0, d_length_parts=0)
    """
    if (form_and_parts := _form(truth)) is None:
        return _score_of_text(truth, generated, rule)
    form, parts = form_and_parts
    digits = sum(map(len, parts))
    find = _FORMS[form].fullmatch if rule == "strict" else _FORMS[form].match
    match = None if generated is None else find(_answer_text(generated, rule))
    if match is None:
        return _score_of_whole(False, False, digits)
    got, signs = match.groups(), "" if rule == "strict" else "[+-]"
    exact = got == parts and (rule != "strict" or ("-" in match[0]) == ("-" in truth))
    lengths = [len(actual) - len(expected) for actual, expected in zip(got, parts, strict=True)]
    return Score(
        valid=True,
        exact=exact,
        equal=exact or _are_equal(*(re.sub(signs, "", text) for text in (truth, match[0]))),
        digit_match=_matched(form, got, parts) / digits,
        d_length=abs(sum(lengths)),
        d_length_parts=sum(map(abs, lengths)),
    )


@lru_cache(maxsize=1 << 10)
def _form(truth: str) -> tuple[int, tuple[str, ...]] | None:
    """Return the index of the target's form, and its parts."""
    for form, pattern in enumerate(_FORMS):
        if match := pattern.fullmatch(truth):
            return form, match.groups()
    return None


def _score_of_text(truth: str, generated: str | None, rule: str) -> Score:
    got = "" if generated is None else _answer_text(generated, rule)
    off = abs(sum(map(str.isdigit, got)) - sum(map(str.isdigit, truth)))
    return _score_of_whole(bool(got), got == truth.strip(), off)


def _score_of_whole(valid: bool, same: bool, off: int) -> Score:
    """Score an answer whose parts cannot be compared; ``off`` is the difference in digits."""
    match = float(same)
    return Score(
        valid=valid, exact=same, equal=same, digit_match=match, d_length=off, d_length_parts=off
    )


def _answer_text(generated: str, rule: str) -> str:
    """Return the part of the text that the rule applies to, without surrounding space."""
    if rule == "published-chat":
        _, preamble, rest = generated.partition(_PREAMBLE)
        generated = rest if preamble else generated
    return generated.strip()


def _matched(form: int, got: tuple[str, ...], parts: tuple[str, ...]) -> int:
    """Return the number of equal digits. Decimals are aligned left, other parts right."""
    count = 0
    for index, (actual, expected) in enumerate(zip(got, parts, strict=True)):
        is_decimals = form in _WITH_DECIMALS and index == 1
        aligned = (actual, expected) if is_decimals else (actual[::-1], expected[::-1])
        count += sum(a == b for a, b in zip(*aligned, strict=False))  # surplus digits do not match
    return count


def _are_equal(truth: str, text: str) -> bool:
    """Return whether two answers are the same number; false if one is too long to evaluate."""
    exponent = text.lower().partition("e")[2]
    if max(len(truth), len(text)) > _LONGEST or len(exponent) > _LONGEST_EXPONENT:
        return False
    _, bar, denominator = text.partition("/")
    if bar and not int(denominator):
        return False
    return Fraction(truth) == Fraction(text)


def in_notation(truth: str, prediction: str | None, digits: int = 0) -> str | None:
    """Rewrite a predicted number in the notation of the target.

    Value schemes predict numbers without a notation. The value is rounded if the target is an
    integer. The prediction is returned unchanged if it already has this notation, or if the target
    is not an integer, a float or a number in scientific notation as written in NUPA.

    digits
        Maximum number of significant digits of the prediction; 0 keeps all.

    >>> in_notation("1.23e4", "12500.0"), in_notation("12", "12.0"), in_notation("12", "12.7")
    ('1.25e4', '12', '13')
    >>> in_notation("52.3", "52.29999923706055", 7)
    '52.3'
    """
    forms = (form for form in (INTEGER, FLOAT, SCIENTIFIC) if re.fullmatch(FORMS[form], truth))
    form = next(forms, None)
    if prediction is None or form is None or (not digits and re.fullmatch(FORMS[form], prediction)):
        return prediction
    try:
        value = Decimal(prediction)
    except InvalidOperation:
        return prediction
    if not value.is_finite() or abs(value.adjusted()) > 1000:
        return prediction
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
