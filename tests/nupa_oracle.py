"""An evaluator of NUPA questions that shares nothing with numtok: it reads the text and uses
Python's fractions and decimals."""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:/[0-9]+)?(?:e-?[0-9]+)?"
_INTEGER = "an integer without any comma separator, like 123 . "
_FLOAT = "a float without any comma separator, like 10.4 . "
_FRACTION = "an **irreducible** fraction without any comma separator, like 7/13 . "
_SCIENTIFIC = (
    "a scientific notation without any comma separator, like 1.23e4 . The float part should be in "
    "the range [1, 10). "
)
_MISSING = "treating any missing digits as 0. "
_LONGEST = Context(prec=5000)


def value(text: str) -> Fraction:
    """Return the value of a number, a fraction or a number in scientific notation."""
    return Fraction(text)


def _digit_by_digit(a: str, b: str, task: str) -> str:
    """Apply a task to each digit position separately, without carrying."""
    wholes, decimals = zip(*(f"{text}.".split(".")[:2] for text in (a, b)), strict=True)
    made = {}
    for place in range(-max(map(len, decimals)), max(map(len, wholes))):
        digits = []
        for whole, rest in zip(wholes, decimals, strict=True):
            text, index = (whole[::-1], place) if place >= 0 else (rest, -place - 1)
            digits.append(int(text[index]) if index < len(text) else 0)
        one, two = digits
        made[place] = {"max": max(one, two), "min": min(one, two), "add": (one + two) % 10}[task]
    total = sum((digit * Fraction(10) ** place for place, digit in made.items()), Fraction(0))
    return floated(total) if "." in a else str(total)


def floated(number: Fraction) -> str:
    """Write a number as NUPA writes floats: all necessary decimals, at least one."""
    text = format(_LONGEST.divide(Decimal(number.numerator), Decimal(number.denominator)), "f")
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"


def in_scientific(number: Fraction) -> str:
    text = floated(number)
    digits = text.replace(".", "").lstrip("0")
    exponent = 0
    while number >= 10:
        number, exponent = number / 10, exponent + 1
    while number < 1:
        number, exponent = number * 10, exponent - 1
    return f"{digits[0]}.{digits[1:].rstrip('0') or '0'}e{exponent}"


def _fraction(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"


def figures(text: str, count: int) -> str:
    """Round to ``count`` significant figures, half to even."""
    rounded = Context(prec=count, rounding=ROUND_HALF_EVEN).create_decimal(text)
    digits = "".join(map(str, rounded.as_tuple().digits)).ljust(count, "0")
    return f"{digits[0]}.{digits[1:]}e{rounded.adjusted()}"


def answer(text: str) -> tuple[str, str]:
    """Return the correct answer to a question, and the answer that the text gives.

    Answers to ``sig`` are rounded correctly. ValueError if the text is not a question with an
    answer.
    """
    asked, _, given = text.partition(" = ")
    match = re.fullmatch(
        r"(?:Directly return the answer as (.*?\. (?:The float.*?\. )?))?(.*)", asked
    )
    assert match is not None
    given_hint, question = match.groups()
    wanted, form = _answer(question)
    hints = {"d": _INTEGER, "f": _FLOAT, "q": _FRACTION, "e": _SCIENTIFIC}
    if given_hint is not None and given_hint != hints[form]:
        raise ValueError(f"{text!r} has the hint {given_hint!r}")
    return wanted, given


def _answer(question: str) -> tuple[str, str]:
    """Return the answer and its form."""
    for pattern, task in _TASKS.items():
        if match := re.fullmatch(pattern, question):
            return task(*match.groups())
    raise ValueError(f"{question!r} is no question")


def _written(number: Fraction, like: str) -> tuple[str, str]:
    """Write a number in the representation of an operand."""
    if "e" in like:
        return in_scientific(number), "e"
    if "/" in like:
        return _fraction(number), "q"
    return (floated(number), "f") if "." in like else (str(number), "d")


def _form(text: str) -> str:
    return _written(Fraction(1), text)[1]


def _digits(a: str, b: str, task: str) -> tuple[str, str]:
    return _digit_by_digit(a, b, task), _form(a)


_N = f"({_NUMBER})"
_TASKS: dict[str, Callable[..., tuple[str, str]]] = {
    rf"Add two numbers: {_N} \+ {_N}": lambda a, b: _written(value(a) + value(b), a),
    rf"Subtract two numbers: {_N} - {_N}": lambda a, b: _written(value(a) - value(b), a),
    rf"Multiply two numbers: {_N} \* {_N}": lambda a, b: _written(value(a) * value(b), a),
    f"Get the maximal number: {_N} and {_N}": lambda a, b: (max(a, b, key=value), _form(a)),
    f"Get the mininal number: {_N} and {_N}": lambda a, b: (min(a, b, key=value), _form(a)),
    "Compare two numbers digit by digit and return the larger digit at each position, "
    rf"{re.escape(_MISSING)}{_N} and {_N}": lambda a, b: _digits(a, b, "max"),
    "Compare two numbers digit by digit and return the smaller digit at each position, "
    rf"{re.escape(_MISSING)}{_N} and {_N}": lambda a, b: _digits(a, b, "min"),
    "The task is to add two given numbers digit by digit and return the result modulo 10 "
    rf"\(ignoring carry\), {re.escape(_MISSING)}{_N} digit add {_N}": lambda a, b: _digits(
        a, b, "add"
    ),
    r"Get the digit at the given position \(from left to right, starting from 0\)\. "
    rf"{_N} at position {_N}": lambda a, b: (a.replace(".", "")[int(b)], "d"),
    f"The total number of digits of {_N}": lambda a: (str(sum(map(str.isdigit, a))), "d"),
    r"Divide two numbers and return the result as a fraction\. ([0-9]+) / ([0-9]+)": (
        lambda a, b: (_fraction(value(a) / value(b)), "q")
    ),
    r"Divide two numbers and return the result as a fraction\. "
    r"\(([0-9]+/[0-9]+)\) / \(([0-9]+/[0-9]+)\)": (
        lambda a, b: (_fraction(value(a) / value(b)), "q")
    ),
    r"Divide two numbers and return the result as an integer\. ([0-9]+) // ([0-9]+)": (
        lambda a, b: (str(divmod(int(a), int(b))[0]), "d")
    ),
    r"Divide two numbers and return the remainder\. ([0-9]+) % ([0-9]+)": (
        lambda a, b: (str(divmod(int(a), int(b))[1]), "d")
    ),
    f"Convert the number to float: {_N}": lambda a: (floated(value(a)), "f"),
    f"Convert the number to scientific notation: {_N}": lambda a: (in_scientific(value(a)), "e"),
    "(?:Count the number of the given digit in the given number: )?"
    "([0-9]+) count the occurrence time of digit ([0-9])": lambda a, b: (
        str(list(a).count(b)),
        "d",
    ),
    f"Convert the number to scientific notation: {_N} and keep significant figures as ([0-9]+)": (
        lambda a, b: (figures(a, int(b)), "e")
    ),
}
