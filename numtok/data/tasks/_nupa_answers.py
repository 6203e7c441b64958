"""The exact answers of NUPA's tasks, from the operands as they are written.

All by integers and strings: a number of a hundred digits fits into no float.
"""

from collections.abc import Callable, Sequence
from math import gcd
from operator import add, mul, sub
from typing import Any

import numpy as np

from numtok.data.nupa.keys import FLOAT, FRACTION, INTEGER, SCIENTIFIC, Key

_Two = Callable[[str, str], str]


def answers(key: Key, first: Sequence[str], second: Sequence[str], rounding: str) -> list[str]:
    """The answers of some questions; ``second`` is empty where there is one operand alone.
    ``rounding`` is that of ``sig``: ``published`` or ``correct``.

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
    """A fraction in lowest terms.

    >>> fraction(6, 4), fraction(0, 7)
    ('3/2', '0/1')
    """
    common = gcd(numerator, denominator)
    return f"{numerator // common}/{denominator // common}"


def decimal(digits: int, places: int) -> str:
    """``digits / 10^places`` as a Float: no zeros at its end, but a decimal at least.

    >>> decimal(12340, 2), decimal(5, 3), decimal(0, 1)
    ('123.4', '0.005', '0.0')
    """
    text = str(digits).zfill(places + 1)
    point = len(text) - places
    return f"{text[:point]}.{text[point:].rstrip('0') or '0'}"


def scientific(digits: int, exponent: int) -> str:
    """``digits * 10^exponent``, above 0, as a ScientificNotation.

    >>> scientific(17244, 39), scientific(100, 0)
    ('1.7244e43', '1.0e2')
    """
    text = str(digits)
    return f"{text[0]}.{text[1:].rstrip('0') or '0'}e{exponent + len(text) - 1}"


def _ratio(text: str) -> tuple[int, int]:
    numerator, _, denominator = text.partition("/")
    return int(numerator), int(denominator)


def _power(text: str) -> tuple[int, int, int]:
    """The mantissa's digits, how many of them are decimals, and the exponent."""
    mantissa, _, exponent = text.partition("e")
    return int(mantissa[0] + mantissa[2:]), len(mantissa) - 2, int(exponent)


# --- two operands -------------------------------------------------------------------------------


def _of_integers(operation: Callable[[int, int], int]) -> _Two:
    return lambda a, b: str(operation(int(a), int(b)))


def _of_floats(operation: Callable[[int, int], int]) -> _Two:
    """Of a sum or a difference: aligned at the point."""

    def done(a: str, b: str) -> str:
        whole, _, decimals = a.partition(".")
        other, _, others = b.partition(".")
        places = max(len(decimals), len(others))
        first = int(whole + decimals.ljust(places, "0"))
        return decimal(operation(first, int(other + others.ljust(places, "0"))), places)

    return done


def _float_product(a: str, b: str) -> str:
    places = len(a) - a.index(".") + len(b) - b.index(".") - 2
    return decimal(int(a.replace(".", "")) * int(b.replace(".", "")), places)


def _of_fractions(operation: Callable[[int, int, int, int], tuple[int, int]]) -> _Two:
    return lambda a, b: fraction(*operation(*_ratio(a), *_ratio(b)))


def _of_scientific(operation: Callable[[int, int], int]) -> _Two:
    """Of a sum or a difference: aligned at the last digit of either."""

    def done(a: str, b: str) -> str:
        first, places, exponent = _power(a)
        second, others, power = _power(b)
        last, end = exponent - places, power - others
        low = min(last, end)
        return scientific(operation(first * 10 ** (last - low), second * 10 ** (end - low)), low)

    return done


def _scientific_product(a: str, b: str) -> str:
    first, places, exponent = _power(a)
    second, others, power = _power(b)
    return scientific(first * second, exponent - places + power - others)


def _integer_order(text: str) -> Any:
    return len(text), text


def _float_order(text: str) -> Any:
    whole, _, decimals = text.partition(".")
    return len(whole), whole, decimals  # 45 is below 4501, and 0 is below 01


def _scientific_order(text: str) -> Any:
    mantissa, _, exponent = text.partition("e")
    return int(exponent), mantissa


#: What numbers of a representation are ordered by.
ORDERS: dict[str, Callable[[str], Any]] = {
    INTEGER: _integer_order,
    FLOAT: _float_order,
    SCIENTIFIC: _scientific_order,
}


def _by_order(order: Callable[[str], Any], chosen: Callable[..., str]) -> _Two:
    return lambda a, b: chosen(a, b, key=order)


def is_less(a: str, b: str) -> bool:
    """Whether a fraction is less than another one."""
    (numerator, denominator), (other, under) = _ratio(a), _ratio(b)
    return numerator * under < other * denominator


_OF_TWO: dict[tuple[str, str], _Two] = {
    ("add", INTEGER): _of_integers(add),
    ("sub", INTEGER): _of_integers(sub),
    ("multiply", INTEGER): _of_integers(mul),
    ("floordiv", INTEGER): _of_integers(lambda a, b: a // b),
    ("mod", INTEGER): _of_integers(lambda a, b: a % b),
    ("truediv", INTEGER): lambda a, b: fraction(int(a), int(b)),
    ("add", FLOAT): _of_floats(add),
    ("sub", FLOAT): _of_floats(sub),
    ("multiply", FLOAT): _float_product,
    ("add", FRACTION): _of_fractions(lambda a, b, c, d: (a * d + c * b, b * d)),
    ("sub", FRACTION): _of_fractions(lambda a, b, c, d: (a * d - c * b, b * d)),
    ("multiply", FRACTION): _of_fractions(lambda a, b, c, d: (a * c, b * d)),
    ("truediv", FRACTION): _of_fractions(lambda a, b, c, d: (a * d, b * c)),
    ("max", FRACTION): lambda a, b: b if is_less(a, b) else a,
    ("min", FRACTION): lambda a, b: b if is_less(b, a) else a,
    ("add", SCIENTIFIC): _of_scientific(add),
    ("sub", SCIENTIFIC): _of_scientific(sub),
    ("multiply", SCIENTIFIC): _scientific_product,
    ("count", INTEGER): lambda a, b: str(a.count(b)),
    ("get_digit", INTEGER): lambda a, b: a[int(b)],
    ("get_digit", FLOAT): lambda a, b: a.replace(".", "")[int(b)],
}
for _representation, _order in ORDERS.items():
    _OF_TWO["max", _representation] = _by_order(_order, max)
    _OF_TWO["min", _representation] = _by_order(_order, min)


# --- one operand --------------------------------------------------------------------------------


def _fraction_to_float(text: str) -> str:
    numerator, denominator = _ratio(text)
    places = denominator.bit_length()  # enough for any 2^i 5^j
    return decimal(numerator * 10**places // denominator, places)


def _scientific_to_float(text: str) -> str:
    digits, places, exponent = _power(text)
    return decimal(digits * 10 ** max(0, exponent - places), max(0, places - exponent))


def _float_to_scientific(text: str) -> str:
    whole, _, decimals = text.partition(".")
    return scientific(int(whole + decimals), -len(decimals))


_OF_ONE: dict[tuple[str, str], Callable[[str], str]] = {
    ("length", INTEGER): lambda a: str(len(a)),
    ("length", FLOAT): lambda a: str(len(a) - 1),
    ("to_float", FRACTION): _fraction_to_float,
    ("to_float", SCIENTIFIC): _scientific_to_float,
    ("to_scient", INTEGER): lambda a: scientific(int(a), 0),
    ("to_scient", FLOAT): _float_to_scientific,
}


# --- significant figures ------------------------------------------------------------------------


def _kept(text: str, figures: int) -> tuple[str, str, int]:
    """The digits that are kept, those left out, and the exponent of the first one."""
    whole, _, decimals = text.partition(".")
    digits = (whole + decimals).ljust(figures, "0")
    return digits[:figures], digits[figures:], len(whole) - 1


def published_figures(text: str, figures: int) -> str:
    """A number of 1 and more with some significant figures, as the benchmark's answers have it.

    The next digit alone decides, and a 5 goes down. Where all kept decimals are zeros there is one
    more of them; where rounding up makes the number longer, its exponent stays, so it is ten times
    too small.

    >>> [published_figures(text, 2) for text in ("2.451", "2.55", "9.96", "100")]
    ['2.4e0', '2.5e0', '1.000e0', '1.00e2']
    """
    kept, left, exponent = _kept(text, figures)
    if left[:1] > "5":
        kept = str(int(kept) + 1)
    decimals = kept[1:] if kept[1:].strip("0") else f"0{kept[1:]}"
    return f"{kept[0]}.{decimals}e{exponent}"


def correct_figures(text: str, figures: int) -> str:
    """A number of 1 and more with exactly so many significant figures, half to even.

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
    """Digits at the same place, units under units; what one lacks is 0, and zeros at either end of
    the result are left out."""
    if not first:
        return []
    both = [text.partition(".") for text in (*first, *second)]
    before, behind = (max(map(len, part)) for part in list(zip(*both, strict=True))[::2])
    width = before + behind
    rows = [whole.zfill(before) + decimals.ljust(behind, "0") for whole, _, decimals in both]
    digits = np.frombuffer("".join(rows).encode(), np.uint8).reshape(2, len(first), width)
    made = _BY_DIGITS[task](digits[0], digits[1]).astype(np.uint8).tobytes().decode()
    found = [made[at : at + width] for at in range(0, len(made), width)]
    if representation == INTEGER:
        return [text.lstrip("0") or "0" for text in found]
    return [
        f"{text[:before].lstrip('0') or '0'}.{text[before:].rstrip('0') or '0'}" for text in found
    ]
