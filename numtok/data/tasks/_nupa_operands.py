"""Sample the operands of NUPA's tasks, a column of candidates at a time.

In a stratum of ``d`` digits, the longer operand has exactly ``d`` digits. The other operand has 1
to ``d`` digits, or at least ``d / 2`` for validation and test. Operands of unequal length are
swapped half of the time. Which digits are counted depends on the representation: all digits of an
Integer, the decimals of a Float or a mantissa, the longer side of a Fraction. Each task adapts the
operands further.
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
_CUT = 3  # digits of the shorter operand in easy variants
_DIGITS_OF_INT64 = 18
_AT_A_TIME = 4  # digits that are sampled together


@cache
def _groups() -> NDArray[np.uint8]:
    """Return the ASCII digits of 0000 to 9999, [10000, 4]."""
    every = "".join(f"{number:04d}" for number in range(10**_AT_A_TIME))
    return np.frombuffer(every.encode(), np.uint8).reshape(-1, _AT_A_TIME)


class Draws:
    """Generator of random columns, which depend only on the purpose and the previous calls."""

    def __init__(self, purpose: str) -> None:
        self._raw = raw_bits(purpose)

    def _bits(self, count: int) -> NDArray[np.uint64]:
        """Return random words of 32 bits, uint64[count]."""
        words = self._raw(-(-count // 2)).astype("<u8").view("<u4")[:count]
        return words.astype(np.uint64)

    def whole(self, low: Ints | int, high: Ints | int, count: int) -> Ints:
        """Return uniform integers [count] from ``low`` to ``high``, both included."""
        width = np.asarray(high, np.int64) - low + 1
        return low + (self._bits(count) * width.astype(np.uint64) >> np.uint64(32)).astype(np.int64)

    def chance(self, share: float, count: int) -> list[bool]:
        """Return ``count`` booleans, each true with probability ``share``."""
        chosen: list[bool] = (self._bits(count) < np.uint64(int(share * 2**32))).tolist()
        return chosen

    def digits(self, lengths: Ints, first: int = 1, last: int = 0) -> Texts:
        """Return a string of random digits for each of the lengths [n].

        The first digit is at least ``first``, and the last is at least ``last``. In a string of one
        digit, the digit is at least the larger of the two.
        """
        count, width = len(lengths), int(lengths.max(initial=1))
        groups = -(-width // _AT_A_TIME)
        drawn = self._bits(count * groups) * np.uint64(10**_AT_A_TIME) >> np.uint64(32)
        characters = _groups()[drawn.astype(np.int64)].reshape(count, groups * _AT_A_TIME)
        rows = np.arange(count)
        if first:
            characters[:, 0] = 48 + self.whole(first, 9, count)
        if last:
            at = lengths - 1
            least = np.where(at == 0, max(first, last), last)
            characters[rows, at] = 48 + self.whole(least, 9, count)
        text, width = characters.tobytes().decode(), groups * _AT_A_TIME
        ends = (rows * width + lengths).tolist()
        return [text[row * width : end] for row, end in enumerate(ends)]


# --- numbers ------------------------------------------------------------------------------------


def _integers(draws: Draws, lengths: Ints) -> Texts:
    texts = draws.digits(lengths)
    singles = draws.whole(0, 9, len(lengths)).tolist()  # a single digit may be 0
    return [
        str(single) if len(text) == 1 else text for text, single in zip(texts, singles, strict=True)
    ]


def _floats(draws: Draws, lengths: Ints) -> Texts:
    integers = draws.digits(draws.whole(1, lengths, len(lengths)))
    decimals = draws.digits(lengths, first=0, last=1)
    return [f"{before}.{after}" for before, after in zip(integers, decimals, strict=True)]


def _fractions(draws: Draws, lengths: Ints) -> Texts:
    """Sample reduced fractions; repeat until the reduced denominator has its length."""
    texts = [""] * len(lengths)
    left = np.arange(len(lengths))
    # Python's integers if they do not fit into int64.
    kind = np.int64 if lengths.max(initial=1) <= _DIGITS_OF_INT64 else object
    while len(left):
        drawn = draws.digits(lengths[left], first=0), draws.digits(lengths[left])
        numerators, denominators = (np.array(list(map(int, column)), kind) for column in drawn)
        common = np.gcd(numerators, denominators)
        numerators, denominators = numerators // common, denominators // common
        least = np.array([10 ** (length - 1) for length in lengths[left].tolist()], kind)
        kept = np.flatnonzero(denominators >= least)
        fractions = zip(
            *(column[kept].tolist() for column in (left, numerators, denominators)), strict=True
        )
        for row, numerator, denominator in fractions:
            texts[row] = f"{numerator}/{denominator}"
        left = np.delete(left, kept)
    return texts


def _mantissas(draws: Draws, lengths: Ints) -> Texts:
    leading = draws.whole(1, 9, len(lengths)).tolist()
    decimals = draws.digits(lengths, first=0, last=1)
    return [f"{before}.{after}" for before, after in zip(leading, decimals, strict=True)]


def _exponents(draws: Draws, count: int) -> Ints:
    return draws.whole(0, _LARGEST_EXPONENT, count)


def _scientific(mantissas: Sequence[str], exponents: Ints) -> Texts:
    pairs = zip(mantissas, exponents.tolist(), strict=True)
    return [f"{mantissa}e{exponent}" for mantissa, exponent in pairs]


# --- pairs --------------------------------------------------------------------------------------

Pairs = tuple[Texts, Texts]


def _lengths(draws: Draws, digits: int, is_held: bool, count: int) -> tuple[Ints, Ints]:
    least = max(1, digits // 2) if is_held else 1
    return np.full(count, digits), draws.whole(least, digits, count)


def _exchanged(draws: Draws, lengths: tuple[Ints, Ints], pairs: Pairs) -> Pairs:
    """Exchange half of the operands of unequal length."""
    chance = draws.chance(0.5, len(lengths[0]))
    unequal = (lengths[0] != lengths[1]).tolist()
    both = [
        (b, a) if swap and differ else (a, b)
        for a, b, swap, differ in zip(*pairs, chance, unequal, strict=True)
    ]
    return [a for a, _ in both], [b for _, b in both]


def _pairs(draws: Draws, key: Key, lengths: tuple[Ints, Ints]) -> Pairs:
    """Sample independent numbers with given lengths."""
    count = len(lengths[0])
    if key.first != SCIENTIFIC:
        draw = {INTEGER: _integers, FLOAT: _floats, FRACTION: _fractions}[key.first]
        return draw(draws, lengths[0]), draw(draws, lengths[1])
    first, second = (_mantissas(draws, length) for length in lengths)
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
    """Sample numbers with a common prefix, which are harder to compare."""
    count = len(lengths[0])
    if key.first == INTEGER:
        first, second = _pairs(draws, key, (lengths[0], lengths[0]))
        same = draws.whole(0, lengths[0] - 1, count).tolist()
        return first, [a[:n] + b[n:] for a, b, n in zip(first, second, same, strict=True)]
    if key.first == FLOAT:
        first, second = _pairs(draws, key, lengths)
        same = draws.whole(0, lengths[1] - 1, count).tolist()
        apart = draws.chance(0.3, count)
        rows = zip(first, second, same, apart, strict=True)
        return first, [b if is_apart else _like(a, b, n) for a, b, n, is_apart in rows]
    first, second = (_mantissas(draws, length) for length in lengths)
    same = draws.whole(-1, lengths[1] - 1, count).tolist()
    second = [b if n < 0 else _like(a, b, n) for a, b, n in zip(first, second, same, strict=True)]
    exponent, other = _exponents(draws, count), _exponents(draws, count)
    power = np.where(draws.chance(0.8, count), exponent, other)
    return _scientific(first, exponent), _scientific(second, power)


def _like(number: str, other: str, same: int) -> str:
    """Return ``other`` with the integer part and the first ``same`` decimals of ``number``."""
    point = number.index(".") + 1
    return number[: point + same] + other[other.index(".") + 1 + same :]


# --- adaptations of each task -------------------------------------------------------------------


def _greater_first(order: Callable[[str], Any], first: str, second: str) -> tuple[str, str]:
    return (second, first) if order(second) > order(first) else (first, second)


def _cut(representation: str, text: str) -> str:
    """Shorten a number to three digits."""
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
    """Invert fractions above 1."""
    a, b = (ratio(text) for text in (first, second))
    return f"{min(a)}/{max(a)}", f"{min(b)}/{max(b)}"


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
    """Sample one operand, with or without a parameter such as a digit."""
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
    """Sample numbers with finite decimals: small exponents, or denominators 2^i 5^j."""
    count = len(lengths)
    if key.first == SCIENTIFIC:
        mantissas = _mantissas(draws, lengths)
        exponents = draws.whole(0, np.minimum(_exponents(draws, count), lengths), count)
        return _scientific(mantissas, exponents)
    # Reducing a fraction may shorten it, and a new denominator lengthen it: sample nearby lengths.
    digits = int(lengths[0])
    drawn = draws.whole(max(1, digits - 1), digits + 1, count)
    twos, fives = draws.whole(0, drawn, count), draws.whole(0, drawn, count)
    fractions = []
    for text, i, j in zip(_fractions(draws, drawn), twos.tolist(), fives.tolist(), strict=True):
        reduced = fraction(max(ratio(text)), 2**i * 5**j)
        if max(map(len, reduced.split("/"))) == digits:
            fractions.append(reduced)
    return fractions


def candidates(draws: Draws, key: Key, digits: int, is_held: bool, count: int) -> Pairs:
    """Sample operands for at most ``count`` questions of a stratum.

    The second operands are empty for tasks with one operand. If ``is_held`` is true, the rules for
    validation and test apply.

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
    adapt = _OF_TWO.get(key.task)
    if key.first == FRACTION and key.task in ("max", "min"):
        adapt = _at_most_one
    if adapt is None:
        return first, second
    both = [adapt(key, a, b) for a, b in zip(first, second, strict=True)]
    return [a for a, _ in both], [b for _, b in both]
