"""How NUPA draws the operands of its tasks, a column of candidates at a time.

A stratum of ``d`` digits has a longer operand of exactly ``d`` and another one of 1 to ``d``, or of
half of ``d`` and more for validation and test; operands of unequal length are exchanged half the
time. What a digit is depends on the representation: all digits of an Integer, the decimals of a
Float and of a mantissa, the longer side of a Fraction. Then each task makes its own of them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.data.nupa.keys import DIGITS, FLOAT, FRACTION, INTEGER, SCIENTIFIC, Key
from numtok.data.tasks._draws import raw_bits
from numtok.data.tasks._nupa_answers import ORDERS, fraction, ratio

Texts = list[str]

_LARGEST_EXPONENT = 99
_CUT = 3  # digits of the shorter operand of the easy variants
_DIGITS_OF_INT64 = 18
_AT_A_TIME = 4  # digits that are drawn together


@cache
def _groups() -> NDArray[np.uint8]:
    """The ASCII digits of 0000 to 9999, [10000, 4]."""
    every = "".join(f"{number:04d}" for number in range(10**_AT_A_TIME))
    return np.frombuffer(every.encode(), np.uint8).reshape(-1, _AT_A_TIME)


class Draws:
    """Random columns, a pure function of the purpose and of what was drawn before."""

    def __init__(self, purpose: str) -> None:
        self._raw = raw_bits(purpose)

    def _bits(self, count: int) -> NDArray[np.uint64]:
        """Of 32 bits each."""
        words = self._raw(-(-count // 2)).astype("<u8").view("<u4")[:count]
        return words.astype(np.uint64)

    def whole(self, low: Ints | int, high: Ints | int, count: int) -> Ints:
        """Uniform numbers [count], both ends included."""
        width = np.asarray(high, np.int64) - low + 1
        return low + (self._bits(count) * width.astype(np.uint64) >> np.uint64(32)).astype(np.int64)

    def chance(self, share: float, count: int) -> list[bool]:
        """True with a probability [count]."""
        chosen: list[bool] = (self._bits(count) < np.uint64(int(share * 2**32))).tolist()
        return chosen

    def digits(self, lengths: Ints, first: int = 1, last: int = 0) -> Texts:
        """Return a string of digits for each of the lengths [n].

        The first digit is at least ``first`` and the last at least ``last``; a single digit is at
        least the larger of both.
        """
        count, width = len(lengths), int(lengths.max(initial=1))
        groups = -(-width // _AT_A_TIME)
        drawn = self._bits(count * groups) * np.uint64(10**_AT_A_TIME) >> np.uint64(32)
        made = _groups()[drawn.astype(np.int64)].reshape(count, groups * _AT_A_TIME)
        rows = np.arange(count)
        if first:
            made[:, 0] = 48 + self.whole(first, 9, count)
        if last:
            at = lengths - 1
            least = np.where(at == 0, max(first, last), last)
            made[rows, at] = 48 + self.whole(least, 9, count)
        text, width = made.tobytes().decode(), groups * _AT_A_TIME
        ends = (rows * width + lengths).tolist()
        return [text[row * width : end] for row, end in enumerate(ends)]


# --- numbers ------------------------------------------------------------------------------------


def _integers(draws: Draws, lengths: Ints) -> Texts:
    made = draws.digits(lengths)
    zeros = draws.whole(0, 9, len(lengths)).tolist()  # a single digit may be 0
    return [str(zero) if len(one) == 1 else one for one, zero in zip(made, zeros, strict=True)]


def _floats(draws: Draws, lengths: Ints) -> Texts:
    whole = draws.digits(draws.whole(1, lengths, len(lengths)))
    decimals = draws.digits(lengths, first=0, last=1)
    return [f"{one}.{two}" for one, two in zip(whole, decimals, strict=True)]


def _fractions(draws: Draws, lengths: Ints) -> Texts:
    """Reduced, and drawn again until the denominator still has its length."""
    found = [""] * len(lengths)
    left = np.arange(len(lengths))
    # Python's own integers, where int64 does not hold them.
    kind = np.int64 if lengths.max(initial=1) <= _DIGITS_OF_INT64 else object
    while len(left):
        drawn = draws.digits(lengths[left], first=0), draws.digits(lengths[left])
        numerators, denominators = (np.array(list(map(int, one)), kind) for one in drawn)
        common = np.gcd(numerators, denominators)
        numerators, denominators = numerators // common, denominators // common
        least = np.array([10 ** (length - 1) for length in lengths[left].tolist()], kind)
        kept = np.flatnonzero(denominators >= least)
        made = zip(
            *(column[kept].tolist() for column in (left, numerators, denominators)), strict=True
        )
        for row, numerator, denominator in made:
            found[row] = f"{numerator}/{denominator}"
        left = np.delete(left, kept)
    return found


def _mantissas(draws: Draws, lengths: Ints) -> Texts:
    leading = draws.whole(1, 9, len(lengths)).tolist()
    decimals = draws.digits(lengths, first=0, last=1)
    return [f"{one}.{two}" for one, two in zip(leading, decimals, strict=True)]


def _exponents(draws: Draws, count: int) -> Ints:
    return draws.whole(0, _LARGEST_EXPONENT, count)


def _scientific(mantissas: Sequence[str], exponents: Ints) -> Texts:
    return [f"{one}e{two}" for one, two in zip(mantissas, exponents.tolist(), strict=True)]


# --- pairs --------------------------------------------------------------------------------------

Pairs = tuple[Texts, Texts]


def _lengths(draws: Draws, digits: int, is_held: bool, count: int) -> tuple[Ints, Ints]:
    least = max(1, digits // 2) if is_held else 1
    return np.full(count, digits), draws.whole(least, digits, count)


def _exchanged(draws: Draws, lengths: tuple[Ints, Ints], pairs: Pairs) -> Pairs:
    """Those of unequal length in either order."""
    chance = draws.chance(0.5, len(lengths[0]))
    unequal = (lengths[0] != lengths[1]).tolist()
    both = [
        (b, a) if swap and differ else (a, b)
        for a, b, swap, differ in zip(*pairs, chance, unequal, strict=True)
    ]
    return [a for a, _ in both], [b for _, b in both]


def _pairs(draws: Draws, key: Key, lengths: tuple[Ints, Ints]) -> Pairs:
    """Independent numbers of given lengths."""
    count = len(lengths[0])
    if key.first != SCIENTIFIC:
        draw = {INTEGER: _integers, FLOAT: _floats, FRACTION: _fractions}[key.first]
        return draw(draws, lengths[0]), draw(draws, lengths[1])
    first, second = (_mantissas(draws, one) for one in lengths)
    exponent = _exponents(draws, count)
    if key.task == "add":
        exponent = np.minimum(exponent, 98)
        power = np.clip(exponent + draws.whole(-5, 5, count), 0, 98)
    elif key.task == "sub":
        difference = draws.whole(1, 5, count)
        exponent = np.maximum(exponent, difference)
        power = exponent - difference
    else:
        power = _exponents(draws, count)
    return _scientific(first, exponent), _scientific(second, power)


def _near(draws: Draws, key: Key, lengths: tuple[Ints, Ints]) -> Pairs:
    """Numbers that begin alike, harder to compare."""
    count = len(lengths[0])
    if key.first == INTEGER:
        first, second = _pairs(draws, key, (lengths[0], lengths[0]))
        same = draws.whole(0, lengths[0] - 1, count).tolist()
        return first, [a[:n] + b[n:] for a, b, n in zip(first, second, same, strict=True)]
    if key.first == FLOAT:
        first, second = _pairs(draws, key, lengths)
        same = draws.whole(0, lengths[1] - 1, count).tolist()
        apart = draws.chance(0.3, count)
        made = zip(first, second, same, apart, strict=True)
        return first, [b if is_apart else _like(a, b, n) for a, b, n, is_apart in made]
    first, second = (_mantissas(draws, one) for one in lengths)
    same = draws.whole(-1, lengths[1] - 1, count).tolist()
    second = [b if n < 0 else _like(a, b, n) for a, b, n in zip(first, second, same, strict=True)]
    exponent, other = _exponents(draws, count), _exponents(draws, count)
    power = np.where(draws.chance(0.8, count), exponent, other)
    return _scientific(first, exponent), _scientific(second, power)


def _like(number: str, other: str, same: int) -> str:
    """``other`` with all of ``number`` before the point, and so many of its decimals."""
    point = number.index(".") + 1
    return number[: point + same] + other[other.index(".") + 1 + same :]


# --- what each task makes of them ---------------------------------------------------------------


def _greater_first(order: Callable[[str], Any], first: str, second: str) -> tuple[str, str]:
    return (second, first) if order(second) > order(first) else (first, second)


def _cut(representation: str, text: str) -> str:
    """A number of three digits of one."""
    if representation == INTEGER:
        return str(int(text[-_CUT:]))
    if representation == FRACTION:
        numerator, denominator = ratio(text)
        return fraction(numerator % 10**_CUT, denominator % 10**_CUT or 1)
    number, e, exponent = text.partition("e")
    whole, _, decimals = number.partition(".")
    return f"{int(whole[-_CUT:])}.{decimals[:_CUT].rstrip('0') or '0'}{e}{exponent}"


def _subtracted(key: Key, first: str, second: str) -> tuple[str, str]:
    return _greater_first(ORDERS[key.first], first, second)


def _multiplied(key: Key, first: str, second: str) -> tuple[str, str]:
    first, second = _greater_first(DIGITS[key.first], first, second)
    return first, _cut(key.first, second)


def _added(key: Key, first: str, second: str) -> tuple[str, str]:
    length = DIGITS[key.first]
    if length(first) < length(second):
        return _cut(key.first, first), second
    return first, _cut(key.first, second)


def _at_most_one(key: Key, first: str, second: str) -> tuple[str, str]:
    """Fractions above 1 are turned over."""
    one, two = (ratio(text) for text in (first, second))
    return f"{min(one)}/{max(one)}", f"{min(two)}/{max(two)}"


def _divided(key: Key, first: str, second: str) -> tuple[str, str]:
    if key.first == FRACTION:
        return first, "1/1" if second[0] == "0" else second
    return first, "1" if second == "0" else second


def _divided_whole(key: Key, first: str, second: str) -> tuple[str, str]:
    return _divided(key, *_greater_first(ORDERS[key.first], first, second))


def _remainder(key: Key, first: str, second: str) -> tuple[str, str]:
    first, second = _greater_first(ORDERS[key.first], first, second)
    kept = _CUT if key.task == "mod_easy" else 7 * len(first) // 10 + 1
    return _divided(key, first, str(int(second[-kept:])))


_OF_TWO: dict[str, Callable[[Key, str, str], tuple[str, str]]] = {
    "sub": _subtracted,
    "add_easy": _added,
    "multiply_easy": _multiplied,
    "truediv": _divided,
    "floordiv": _divided_whole,
    "mod": _remainder,
    "mod_easy": _remainder,
}


def _of_one(draws: Draws, key: Key, digits: int, count: int) -> Pairs:
    """One operand, and a number beside it or none."""
    lengths = np.full(count, digits)
    if key.task == "to_float":
        return _to_float(draws, key, lengths), []
    if key.first == FLOAT:
        first = _floats(draws, lengths)
    elif key.task in ("to_scient", "sig"):  # 0 has no leading digit
        first = draws.digits(lengths)
    else:
        first = _integers(draws, lengths)
    written = np.array([len(text) - ("." in text) for text in first])
    if key.task == "count":
        return first, list(map(str, draws.whole(0, 9, count).tolist()))
    if key.task == "get_digit":
        return first, list(map(str, draws.whole(0, written - 1, count).tolist()))
    if key.task == "sig":
        return first, list(map(str, draws.whole(2, np.maximum(2, written), count).tolist()))
    if key.task == "to_scient" and key.first == INTEGER:
        zeros = draws.whole(0, lengths // 2, count).tolist()
        return [a[: digits - n] + "0" * n for a, n in zip(first, zeros, strict=True)], []
    return first, []


def _to_float(draws: Draws, key: Key, lengths: Ints) -> Texts:
    """Numbers whose decimals end: fewer powers of ten than decimals, or over 2^i 5^j."""
    count = len(lengths)
    if key.first == SCIENTIFIC:
        mantissas = _mantissas(draws, lengths)
        exponents = draws.whole(0, np.minimum(_exponents(draws, count), lengths), count)
        return _scientific(mantissas, exponents)
    # Reduced, a fraction gets shorter, and over a power of ten longer: so from all lengths near by.
    digits = int(lengths[0])
    drawn = draws.whole(max(1, digits - 1), digits + 1, count)
    twos, fives = draws.whole(0, drawn, count), draws.whole(0, drawn, count)
    made = []
    for text, i, j in zip(_fractions(draws, drawn), twos.tolist(), fives.tolist(), strict=True):
        reduced = fraction(max(ratio(text)), 2**i * 5**j)
        if max(map(len, reduced.split("/"))) == digits:
            made.append(reduced)
    return made


def candidates(draws: Draws, key: Key, digits: int, is_held: bool, count: int) -> Pairs:
    """Operands of at most ``count`` questions of a stratum; the second ones are empty where there
    is one operand alone. ``is_held``: for validation and test.

    >>> from numtok.data.nupa.keys import KEYS
    >>> candidates(Draws("a"), KEYS["mod_easy_Integer_Integer_Integer"], 6, False, 2)
    (['945886', '857794'], ['530', '452'])
    """
    if key.second in ("none", "int"):
        return _of_one(draws, key, digits, count)
    lengths = _lengths(draws, digits, is_held, count)
    if key.task == "max_hard":
        pairs = _near(draws, key, lengths)
        lengths = (lengths[0], lengths[0]) if key.first == INTEGER else lengths
    else:
        pairs = _pairs(draws, key, lengths)
    first, second = _exchanged(draws, lengths, pairs)
    made = _OF_TWO.get(key.task)
    if key.first == FRACTION and key.task in ("max", "min"):
        made = _at_most_one
    if made is None:
        return first, second
    both = [made(key, a, b) for a, b in zip(first, second, strict=True)]
    return [a for a, _ in both], [b for _, b in both]
