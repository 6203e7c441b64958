"""Converts literals to the nearest float64, and rounds them exactly to a few decimal digits.

``read`` gives exactly the same values as Python's ``float()``. Short literals need one exact
multiplication or division (Clinger 1990, "How to read floating point numbers accurately"), longer
ones a 128-bit product (Lemire 2021, "Number parsing at a gigabyte per second"). The few literals
that neither method decides (more than 19 digits, close to a tie) are read with ``float()`` itself.

``round_half_even`` works on the digits as written, never on the float: at three digits,
0.1435 is a tie, although the nearest float is not.
"""

import numpy as np

from numtok.arrays import Bools, Floats, Int32s, Ints, UInt8s, UInt64s
from numtok.kernel_types import boolean, float64, int32, int64, reads, uint8, uint64, void, writes
from numtok.kernels import Intrinsic, byte_at, inlined, kernel, leading_zeros
from numtok.numerals._eight import digits_end, eight_digits, value_of_digits
from numtok.numerals.literals import EXPONENT_LIMIT, Significands, value_of

_SMALLEST, _LARGEST = -342, 308  # smaller powers of ten give 0, larger ones infinity
_MOST_DIGITS = 18  # digits that fit into an int64 mantissa


def _powers_of_five() -> tuple[UInt64s, UInt64s]:
    """Return the leading 128 bits of 5^q for q from -342 to 308, as high and low words.

    Positive powers are truncated and reciprocals rounded up, as the method's proof requires.
    """
    words = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            word = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            word = (1 << (bits + 127)) // power + 1
            word >>= word.bit_length() - 128
        words.append(word)
    mask = (1 << 64) - 1
    return (
        np.array([word >> 64 for word in words], np.uint64),
        np.array([word & mask for word in words], np.uint64),
    )


_FIVE_HIGH, _FIVE_LOW = _powers_of_five()
_POWERS_OF_TEN = np.array([10**k for k in range(20)], np.uint64)
_TEN = np.array([10.0**k for k in range(23)])  # exact in float64
_TEN_WORD = np.uint64(10)
_HALF = 0.5 + 1e-9  # of a unit; a value exactly half a unit off may still be written as the number


@Intrinsic
def _high_word(typing_context, a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of a 64 x 64 bit product."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        x, y = (builder.zext(argument, wide) for argument in arguments)
        high = builder.lshr(builder.mul(x, y), ir.Constant(wide, 64))
        return builder.trunc(high, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@Intrinsic
def _as_float(typing_context, a):  # type: ignore[no-untyped-def]
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


_U = np.uint64
_ONE, _ZERO_WORD, _THREE = _U(1), _U(0), _U(3)
_LOW_NINE, _LOW_ELEVEN = _U((1 << 9) - 1), _U((1 << 11) - 1)
_HIDDEN_BIT, _INFINITY = _U(1 << 52), _U(0x7FF << 52)


@inlined
def _power_of_two(q):  # type: ignore[no-untyped-def]
    """Return floor(q * log2(10)), computed as a fixed-point product."""
    return (217706 * q) >> 16


@inlined
def _nearest_bits(w, q):  # type: ignore[no-untyped-def]
    """Return the bits of the float64 nearest to w * 10^q, for an exact w > 0 of at most 19
    digits."""
    if q < _SMALLEST:
        return _ZERO_WORD
    if q > _LARGEST:
        return _INFINITY
    zeros = leading_zeros(w)
    w = w << zeros
    high = _high_word(w, _FIVE_HIGH[q - _SMALLEST])
    low = w * _FIVE_HIGH[q - _SMALLEST]
    if high & _LOW_NINE == _LOW_NINE:  # 55 bits are not enough: refine with the lower word
        carry = _high_word(w, _FIVE_LOW[q - _SMALLEST])
        low = low + carry
        if low < carry:
            high = high + _ONE
    top = high >> _U(63)
    shift = top + _U(9)
    mantissa = high >> shift
    power = _power_of_two(q) + 63 + np.int64(top) - np.int64(zeros) + 1023  # the bias of float64
    if power <= 0:  # subnormal
        if power <= -63:
            return _ZERO_WORD
        mantissa = mantissa >> _U(1 - power)
        # A carry into the hidden bit gives the smallest normal number, whose bits are correct.
        return (mantissa + (mantissa & _ONE)) >> _ONE
    if low <= _ONE and -4 <= q <= 23 and mantissa & _THREE == _ONE and mantissa << shift == high:
        mantissa = mantissa - _ONE  # exactly half way: to even
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa == _HIDDEN_BIT << _ONE:
        mantissa = _HIDDEN_BIT
        power += 1
    if power >= 0x7FF:
        return _INFINITY
    return (mantissa ^ _HIDDEN_BIT) | (_U(power) << _U(52))


@inlined
def _digit(c):  # type: ignore[no-untyped-def]
    """Return the value of an ASCII digit; 10 or more for any other byte."""
    return np.uint8(c - np.uint8(ord("0")))


@inlined
def _exponent_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return the power of ten written at ``i``, after the digits: an exponent, a percent sign."""
    exponent = np.int64(0)
    if i < end and byte_at(data, i) | 0x20 == ord("e"):
        i += 1
        negative = byte_at(data, i) == ord("-")
        if negative or byte_at(data, i) == ord("+"):
            i += 1
        while i < end and _digit(byte_at(data, i)) < 10:
            exponent = exponent * 10 + np.int64(_digit(byte_at(data, i)))
            if exponent > EXPONENT_LIMIT:
                exponent = np.int64(EXPONENT_LIMIT)
            i += 1
        if negative:
            exponent = -exponent
    if i < end and byte_at(data, i) == ord("%"):
        exponent -= 2
    return exponent


@inlined
def _plain_significand(data, i, end):  # type: ignore[no-untyped-def]
    """Return (w, q) of a literal with at most 7 digits before the point and 19 digits in total; q
    is 1 for all other literals. Eight bytes must be readable at ``end``."""
    point = digits_end(data, i, end)
    count = point - i
    digits = end - i - 1
    if not (
        0 < count < 8 and (point == end or (digits <= 19 and byte_at(data, point) == ord(".")))
    ):
        return _ZERO_WORD, np.int64(1)
    w = value_of_digits(data, i, count)
    i = point + 1
    q = np.int64(0)
    if point < end:
        q = i - end
        if digits_end(data, i, end) < end:
            return _ZERO_WORD, np.int64(1)
        while i + 8 <= end:
            w = w * _U(100_000_000) + value_of_digits(data, i, 8)
            i += 8
        if i < end:
            w = w * _POWERS_OF_TEN[end - i] + value_of_digits(data, i, end - i)
    return w, q


@inlined
def _significand(data, i, end):  # type: ignore[no-untyped-def]
    """Return (w, q, more): the literal is w * 10^q, with w of at most 19 digits; with ``more`` it
    is slightly larger, by digits that do not fit into w."""
    w = _ZERO_WORD
    digits = 0  # significant digits in w
    q = np.int64(0)
    point = False
    more = False
    while i < end:
        if 0 < digits <= 11 and eight_digits(data, i, end):
            w = w * _U(100_000_000) + value_of_digits(data, i, 8)
            digits += 8
            q -= 8 * point
            i += 8
            continue
        c = byte_at(data, i)
        digit = _digit(c)
        if digit < 10:
            if digits < 19:
                w = w * _U(10) + _U(digit)
                digits += w != _ZERO_WORD
                q -= point
            else:
                more |= digit != 0
                q += not point
        elif c == ord("."):
            point = True
        elif c | 0x20 == ord("e") or c == ord("%"):
            q += _exponent_at(data, i, end)
            break
        i += 1
    return w, q, more


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32),
        writes(float64), writes(uint64), writes(int32), writes(boolean), writes(boolean),
        writes(int32),
    )
)  # fmt: skip
def _read(data, starts, ends, values, digits, exponents, negative, more, undecided):  # type: ignore[no-untyped-def]
    """Read literals; ``undecided`` receives the indices left for float(). Returns their number."""
    left = 0
    for n in range(len(starts)):
        first = byte_at(data, starts[n])
        minus = first == ord("-") or first == 0xE2  # the first byte of U+2212
        begin, end = np.int64(starts[n]), np.int64(ends[n])
        q = np.int64(1)
        if end + 8 <= len(data):
            w, q = _plain_significand(data, begin + (first == ord("-")), end)
        inexact = False
        if q > 0:
            w, q, inexact = _significand(data, begin, end)
        if w == _ZERO_WORD:
            value = 0.0
            q = np.int64(0)
        elif not inexact and w <= _HIDDEN_BIT << _ONE and -22 <= q <= 22:
            value = np.float64(w) / _TEN[-q] if q < 0 else np.float64(w) * _TEN[q]
        else:
            bits = _nearest_bits(w, q)
            if inexact and bits != _nearest_bits(w + _ONE, q):
                undecided[left] = n
                left += 1
            value = _as_float(bits)
        values[n] = -value if minus else value
        digits[n] = w
        exponents[n] = q
        negative[n] = minus
        more[n] = inexact
    return left


def read(data: UInt8s, starts: Int32s, ends: Int32s) -> tuple[Floats, Significands]:
    """Return the float64 nearest to each literal ``data[starts[n]:ends[n]]``, and the digits of the
    literals. Values are bit-identical to the results of ``float()``.

    Thousands separators are skipped, ``%`` divides by 100, and U+2212 is a minus sign. Literals too
    large for float64 give infinity, as ``float("1e400")`` does.

    >>> data = np.frombuffer(b"-6.02e1", np.uint8)
    >>> read(data, np.array([0], np.int32), np.array([7], np.int32))[0]
    array([-60.2])
    """
    count = len(starts)
    values = np.empty(count, np.float64)
    significands = Significands(
        np.empty(count, np.uint64),
        np.empty(count, np.int32),
        np.empty(count, np.bool_),
        np.empty(count, np.bool_),
    )
    undecided = np.empty(count, np.int32)
    left = _read(data, starts, ends, values, *significands, undecided)
    for n in undecided[:left]:
        values[n] = value_of(data[starts[n] : ends[n]].tobytes().decode())
    return values, significands


@inlined
def count_digits(word):  # type: ignore[no-untyped-def]
    """Return the number of decimal digits in an unsigned integer from 1 to 10^19 - 1."""
    # 1233 / 4096 is just above log10(2), so this is the number of digits or one less.
    count = ((64 - np.int64(leading_zeros(word))) * 1233) >> 12
    return count + (word >= _POWERS_OF_TEN[count])


@kernel(void(reads(uint64), reads(int32), reads(boolean), int64, writes(int64), writes(int32)))
def _round(digits, exponents, more, places, mantissa, exponent):  # type: ignore[no-untyped-def]
    limit = _POWERS_OF_TEN[places]
    for n in range(len(digits)):
        m = digits[n]
        q = np.int64(exponents[n])
        if m != _ZERO_WORD:
            excess = count_digits(m) - places
            q += excess
            if excess > 0:
                unit = _POWERS_OF_TEN[excess]  # unit of the last digit that is kept
                kept = m // unit
                dropped = m - kept * unit
                half = unit >> _ONE
                tie = dropped == half
                # Without branches: which way a number is rounded cannot be predicted.
                above = (dropped > half) | (tie & (more[n] | (kept & _ONE == _ONE)))
                m = kept + _U(above)
                if m == limit:
                    m = _POWERS_OF_TEN[places - 1]
                    q += 1
            else:
                m *= _POWERS_OF_TEN[-excess]
        mantissa[n] = m
        exponent[n] = q


def round_half_even(significands: Significands, places: int) -> tuple[Ints, Int32s]:
    """Round numbers to ``places`` (1 to 18) significant decimal digits, with ties to even.

    Returns mantissas (int64[n], with exactly that many digits, or 0 for a zero) and exponents
    (int32[n]). Each number is about ``mantissa * 10**exponent``.

    >>> data = np.frombuffer(b"0.1435", np.uint8)
    >>> _, digits = read(data, np.array([0], np.int32), np.array([6], np.int32))
    >>> round_half_even(digits, 3)
    (array([144]), array([-3], dtype=int32))
    """
    if not 1 <= places <= _MOST_DIGITS:
        raise ValueError(f"places must be from 1 to {_MOST_DIGITS} (got {places})")
    count = len(significands.digits)
    mantissa, exponent = np.empty(count, np.int64), np.empty(count, np.int32)
    _round(
        significands.digits, significands.exponents, significands.more, places, mantissa, exponent
    )
    return mantissa, exponent


@inlined
def _split(x):  # type: ignore[no-untyped-def]
    """Split a float64 into two summands whose products with other such parts are exact
    (Dekker 1971)."""
    big = 134217729.0 * x  # 2^27 + 1
    high = big - (big - x)
    return high, x - high


@inlined
def _float_power(exponent):  # type: ignore[no-untyped-def]
    """Return 2^exponent, for the exponent of a normal float64."""
    return _as_float(np.uint64(exponent + 1023) << np.uint64(52))


@inlined
def _units_off(value, w, q):  # type: ignore[no-untyped-def]
    """Return how far a float64 is above w * 10^q, with w of at most 19 digits, in units of 10^q.
    Small differences are accurate to 1e-11, enough to decide whether the last digit is right."""
    if q < _SMALLEST or q > _LARGEST:
        return np.inf
    # 10^q is power + rest, and w is most + few, both scaled by a power of two.
    power = np.float64(_FIVE_HIGH[q - _SMALLEST] & ~_LOW_ELEVEN)
    rest = np.float64(_FIVE_HIGH[q - _SMALLEST] & _LOW_ELEVEN)
    rest += np.float64(_FIVE_LOW[q - _SMALLEST]) * 2.0**-64
    most, few = np.float64(w & ~_LOW_ELEVEN), np.float64(w & _LOW_ELEVEN)
    # In two steps, because the power of two alone may exceed float64.
    exponent = np.int64(63 - _power_of_two(q))
    scaled = value * _float_power(exponent >> 1) * _float_power(exponent - (exponent >> 1))
    product = most * power
    most_high, most_low = _split(most)
    power_high, power_low = _split(power)
    rounding = (
        (most_high * power_high - product) + most_high * power_low + most_low * power_high
    ) + most_low * power_low
    return ((scaled - product) - (rounding + most * rest + few * power)) / power


@kernel(
    void(
        *(reads(uint64), reads(int32), reads(boolean), reads(boolean), reads(float64)),
        writes(boolean),
    )
)
def _further(digits, exponents, negative, more, values, further):  # type: ignore[no-untyped-def]
    for n in range(len(values)):
        if not np.isfinite(values[n]):
            continue
        m = digits[n]
        off = _units_off(-values[n] if negative[n] else values[n], m, np.int64(exponents[n]))
        off = abs(off - 0.5 * more[n])  # the exact number is within the unit above
        half = _HALF
        while off > half and not more[n] and m != _ZERO_WORD and m % _TEN_WORD == _ZERO_WORD:
            m //= _TEN_WORD
            half *= 10.0
        further[n] = off > half


def further_than_digits(significands: Significands, values: Floats) -> Bools:
    """Return which ``values`` [n] differ from the written numbers by more than half a unit in the
    last digit, bool[n].

    With more than 19 digits, the 19th counts as the last. Trailing zeros do not count as digits.
    Values that are not finite count as equal.
    """
    further = np.zeros(len(values), np.bool_)
    _further(*significands, values, further)
    return further
