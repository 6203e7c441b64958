"""Compute the exact answers of NUPA's tasks from the operands as strings.

Only integers and strings are used, because floats cannot represent numbers of a hundred digits.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd
from operator import add, mul, sub
from typing import Any

import numpy as np

from numtok.data.nupa.keys import FLOAT, FRACTION, INTEGER, SCIENTIFIC, Key

_Two = Callable[[str, str], str]
_Written = Callable[[int, int], str]  # formats digits and the power of ten of the last one


def answers(key: Key, first: Sequence[str], second: Sequence[str], rounding: str) -> list[str]:
    """Return the answers to questions; ``second`` is empty for tasks with one operand.

    ``rounding``, for the task ``sig``, is ``published`` or ``correct``.

    >>> from numtok.data.nupa.keys import KEYS
    >>> key = KEYS["sub_ScientificNotation_ScientificNotation_ScientificNotation"]
    >>> answers(key, ["9.711e38"], ["9.2e36"], "correct")
    ['9.619e38']
    """
    task = key.task.removesuffix("_easy").removesuffix("_hard")
    if task in _BY_DIGITS:
        return _by_digits(task, key.first, first, second)
    if task == "sig":
        rounded = published_figures if rounding == "published" else correct_figures
        return list(map(rounded, first, map(int, second)))
    if key.second == "none":
        return list(map(_OF_ONE[task, key.first], first))
    return list(map(_OF_TWO[task, key.first], first, second))


# --- numbers as written -------------------------------------------------------------------------


def fraction(numerator: int, denominator: int) -> str:
    """Format a fraction in lowest terms.

    >>> fraction(6, 4), fraction(0, 7)
    ('3/2', '0/1')
    """
    common = gcd(numerator, denominator)
    return f"{numerator // common}/{denominator // common}"


def decimal(digits: int, exponent: int) -> str:
    """Format ``digits * 10^exponent`` as a Float: at least one decimal, no other trailing zeros.

    >>> decimal(12340, -2), decimal(5, -3), decimal(0, -1), decimal(12, 1)
    ('123.4', '0.005', '0.0', '120.0')
    """
    places = max(0, -exponent)
    text = str(digits * 10 ** max(0, exponent)).zfill(places + 1)
    point = len(text) - places
    return f"{text[:point]}.{text[point:].rstrip('0') or '0'}"


def scientific(digits: int, exponent: int) -> str:
    """Format the positive number ``digits * 10^exponent`` as ScientificNotation.

    >>> scientific(17244, 39), scientific(100, 0)
    ('1.7244e43', '1.0e2')
    """
    text = str(digits)
    return f"{text[0]}.{text[1:].rstrip('0') or '0'}e{exponent + len(text) - 1}"


def ratio(text: str) -> tuple[int, int]:
    """Parse a fraction such as ``7/13``, and return its numerator and denominator."""
    numerator, _, denominator = text.partition("/")
    return int(numerator), int(denominator)


def _number(text: str) -> tuple[int, int]:
    """Parse a number (not a fraction) to its digits and the power of ten of the last one."""
    mantissa, _, exponent = text.partition("e")
    whole, _, decimals = mantissa.partition(".")
    return int(whole + decimals), int(exponent or 0) - len(decimals)


# --- two operands -------------------------------------------------------------------------------


def _of_integers(operation: Callable[[int, int], int]) -> _Two:
    return lambda a, b: str(operation(int(a), int(b)))


def _of_fractions(operation: Callable[[int, int, int, int], tuple[int, int]]) -> _Two:
    return lambda a, b: fraction(*operation(*ratio(a), *ratio(b)))


def _sum(operation: Callable[[int, int], int], written: _Written) -> _Two:
    """Return a function for sums or differences, aligned at the last digit of either operand."""

    def done(a: str, b: str) -> str:
        (first, end), (second, last) = _number(a), _number(b)
        low = min(end, last)
        return written(operation(first * 10 ** (end - low), second * 10 ** (last - low)), low)

    return done


def _product(written: _Written) -> _Two:
    def done(a: str, b: str) -> str:
        (first, end), (second, last) = _number(a), _number(b)
        return written(first * second, end + last)

    return done


def _integer_order(text: str) -> Any:
    return len(text), text


def _float_order(text: str) -> Any:
    whole, _, decimals = text.partition(".")
    return len(whole), whole, decimals  # 45 is below 4501, and 0 is below 01


def _scientific_order(text: str) -> Any:
    mantissa, _, exponent = text.partition("e")
    return int(exponent), mantissa


#: Sort keys for the numbers of each representation.
ORDERS: dict[str, Callable[[str], Any]] = {
    INTEGER: _integer_order,
    FLOAT: _float_order,
    FRACTION: lambda text: Fraction(*ratio(text)),
    SCIENTIFIC: _scientific_order,
}


def _by_order(order: Callable[[str], Any], chosen: Callable[..., str]) -> _Two:
    return lambda a, b: chosen(a, b, key=order)


_OF_TWO: dict[tuple[str, str], _Two] = {
    ("add", INTEGER): _of_integers(add),
    ("sub", INTEGER): _of_integers(sub),
    ("multiply", INTEGER): _of_integers(mul),
    ("floordiv", INTEGER): _of_integers(lambda a, b: a // b),
    ("mod", INTEGER): _of_integers(lambda a, b: a % b),
    ("truediv", INTEGER): lambda a, b: fraction(int(a), int(b)),
    ("add", FRACTION): _of_fractions(lambda a, b, c, d: (a * d + c * b, b * d)),
    ("sub", FRACTION): _of_fractions(lambda a, b, c, d: (a * d - c * b, b * d)),
    ("multiply", FRACTION): _of_fractions(lambda a, b, c, d: (a * c, b * d)),
    ("truediv", FRACTION): _of_fractions(lambda a, b, c, d: (a * d, b * c)),
    ("count", INTEGER): lambda a, b: str(a.count(b)),
    ("get_digit", INTEGER): lambda a, b: a[int(b)],
    ("get_digit", FLOAT): lambda a, b: a.replace(".", "")[int(b)],
}
for _representation, _form in ((FLOAT, decimal), (SCIENTIFIC, scientific)):
    _OF_TWO["add", _representation] = _sum(add, _form)
    _OF_TWO["sub", _representation] = _sum(sub, _form)
    _OF_TWO["multiply", _representation] = _product(_form)
for _representation, _order in ORDERS.items():
    _OF_TWO["max", _representation] = _by_order(_order, max)
    _OF_TWO["min", _representation] = _by_order(_order, min)


# --- one operand --------------------------------------------------------------------------------


def _fraction_to_float(text: str) -> str:
    numerator, denominator = ratio(text)
    places = denominator.bit_length()  # enough for any 2^i 5^j
    return decimal(numerator * 10**places // denominator, -places)


_OF_ONE: dict[tuple[str, str], Callable[[str], str]] = {
    ("length", INTEGER): lambda a: str(len(a)),
    ("length", FLOAT): lambda a: str(len(a) - 1),
    ("to_float", FRACTION): _fraction_to_float,
    ("to_float", SCIENTIFIC): lambda a: decimal(*_number(a)),
    ("to_scient", INTEGER): lambda a: scientific(*_number(a)),
    ("to_scient", FLOAT): lambda a: scientific(*_number(a)),
}


# --- significant digits -------------------------------------------------------------------------


def _kept(text: str, figures: int) -> tuple[str, str, int]:
    """Return the kept digits, the dropped digits, and the exponent of the first one."""
    whole, _, decimals = text.partition(".")
    digits = (whole + decimals).ljust(figures, "0")
    return digits[:figures], digits[figures:], len(whole) - 1


def published_figures(text: str, figures: int) -> str:
    """Round a number of at least 1 to significant digits like the published answers.

    Only the next digit is considered, and 5 is rounded down. If all decimals are zero, a zero is
    added. If rounding carries into a new digit, the exponent is not adjusted, so the result is too
    small by a factor of ten.

    >>> [published_figures(text, 2) for text in ("2.451", "2.55", "9.96", "100")]
    ['2.4e0', '2.5e0', '1.000e0', '1.00e2']
    """
    kept, left, exponent = _kept(text, figures)
    if left[:1] > "5":
        kept = str(int(kept) + 1)
    decimals = kept[1:] if kept[1:].strip("0") else f"0{kept[1:]}"
    return f"{kept[0]}.{decimals}e{exponent}"


def correct_figures(text: str, figures: int) -> str:
    """Round a number of at least 1 to ``figures`` significant digits, with ties to even.

    >>> [correct_figures(text, 2) for text in ("2.46", "2.55", "2.45", "9.96", "100")]
    ['2.5e0', '2.6e0', '2.4e0', '1.0e1', '1.0e2']
    """
    kept, left, exponent = _kept(text, figures)
    half = "5".ljust(len(left), "0")
    if left and (left > half or (left == half and int(kept[-1]) % 2)):
        kept = str(int(kept) + 1)
        if len(kept) > figures:
            kept, exponent = kept[:-1], exponent + 1
    return f"{kept[0]}.{kept[1:]}e{exponent}"


# --- digit by digit -----------------------------------------------------------------------------

_BY_DIGITS: dict[str, Callable[[Any, Any], Any]] = {
    "digit_max": np.maximum,
    "digit_min": np.minimum,
    "digit_add": lambda a, b: (a - 48 + b - 48) % 10 + 48,  # of ASCII
}


def _by_digits(
    task: str, representation: str, first: Sequence[str], second: Sequence[str]
) -> list[str]:
    """Combine the digits at each digit position; missing digits are 0.

    Leading and trailing zeros of the result are dropped.
    """
    if not first:
        return []
    both = [text.partition(".") for text in (*first, *second)]
    before, after = (max(map(len, part)) for part in list(zip(*both, strict=True))[::2])
    width = before + after
    rows = [whole.zfill(before) + decimals.ljust(after, "0") for whole, _, decimals in both]
    digits = np.frombuffer("".join(rows).encode(), np.uint8).reshape(2, len(first), width)
    joined = _BY_DIGITS[task](digits[0], digits[1]).astype(np.uint8).tobytes().decode()
    results = [joined[at : at + width] for at in range(0, len(joined), width)]
    if representation == INTEGER:
        return [text.lstrip("0") or "0" for text in results]
    return [
        f"{text[:before].lstrip('0') or '0'}.{text[before:].rstrip('0') or '0'}" for text in results
    ]
