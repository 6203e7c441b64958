"""Rewrites the numbers of texts that are in a notation of the policy.

The kernel stops at each number and checks its context. Text between numbers is copied.
"""

from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.kernel_types import int32, int64, reads, uint8, writes
from numtok.kernels import byte_at, copy_bytes, helper, kernel
from numtok.numerals._eight import digits_end
from numtok.numerals._identifiers import other_digit_before, uuid_end
from numtok.numerals.notations._text import HIGH, SPACES, width_of
from numtok.numerals.notations.groups import (
    APOSTROPHE,
    INDIAN,
    KINDS,
    SPACE,
    UNDERSCORE,
    groups_end,
)
from numtok.numerals.notations.passages import next_anchor
from numtok.numerals.notations.powers import power_at, suffix_at, times_power_at
from numtok.numerals.notations.ratios import (
    GROWTH,
    ratio_at,
    stands_alone,
    vulgar_at,
    write_integer,
    write_ratio,
)
from numtok.numerals.notations.rewritten import Rewritten
from numtok.numerals.notations.signs import bracket_before, minus_after
from numtok.numerals.notations.units import ends_quantity, unit_before
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import (
    exponent_end,
    is_digit_at,
    is_digit_byte,
    letter_before,
    operand_before,
    thousands_end,
)

# Flags; the lowest ones are the kinds of groups.
_THOUSANDS, _PERCENT, _SUFFIXES, _FRACTIONS, _UNITS, _DIMENSIONS, _POWERS, _PAREN, _TRAILING = (
    1 << k for k in range(4, 13)
)
_FLAGS = {
    "apostrophe": APOSTROPHE,
    "space": SPACE,
    "underscore": UNDERSCORE,
    "indian": INDIAN,
    "thousands": _THOUSANDS,
    "percent": _PERCENT,
    "suffixes": _SUFFIXES,
    "fractions": _FRACTIONS,
    "units": _UNITS,
    "dimensions": _DIMENSIONS,
    "unicode": _POWERS,
    "paren": _PAREN,
    "trailing": _TRAILING,
}
_ZERO, _ONE, _POINT, _SLASH, _CARET = ord("0"), ord("1"), ord("."), ord("/"), ord("^")
_MINUS, _PLUS, _PERCENT_SIGN, _CLOSE, _BLANK = ord("-"), ord("+"), ord("%"), ord(")"), ord(" ")
_COMMA = ord(",")
_E, _X, _LOWER = ord("e"), ord("x"), 0x20


class _Digits(NamedTuple):
    """A number without what may follow its digits. All fields are int64."""

    start: Any  # with its own point
    digits: Any  # end of the first digits
    whole: Any  # end of the digits before the point, with groups
    stop: Any  # end of the fraction
    is_grouped: Any  # whether separators must be left out
    is_unit: Any  # whether a unit stands right before it


class _Rest(NamedTuple):
    """The rest of a number, after its mantissa. All fields are int64."""

    stop: Any
    kind: Any  # a kind below
    first: Any  # exponent of a power or a suffix; numerator of a fraction
    second: Any  # denominator of a fraction


# Kinds of rests. The mantissa of a bare power, 10^5, is 1.
_NONE, _SCALED, _BARE_POWER, _RATIO = range(4)


@helper
def _skipped(stop):  # type: ignore[no-untyped-def]
    """Return digits that are not to be rewritten. ``stop`` is where to continue."""
    zero = np.int64(0)
    return _Digits(
        start=np.int64(-1), digits=stop, whole=stop, stop=stop, is_grouped=zero, is_unit=zero
    )


@helper
def _point_and_digit(data, i, end):  # type: ignore[no-untyped-def]
    return i < end and byte_at(data, i) == _POINT and is_digit_at(data, i + 1, end)


@helper
def _groups_end(data, begin, i, j, end, flags):  # type: ignore[no-untyped-def]
    """Return the end of the groups after the digits ``data[i:j]``, or ``j``, and whether their
    separators must be left out."""
    whole, is_grouped = j, False
    if flags & _THOUSANDS:
        whole = thousands_end(data, begin, i, j, end)
    for kind in KINDS:
        if whole == j and flags & kind:
            whole = groups_end(data, begin, i, j, end, kind)
            is_grouped = whole > j
    return whole, is_grouped


@helper
def _mantissa_at(data, begin, i, end, flags, fresh):  # type: ignore[no-untyped-def]
    """Return the mantissa whose first digit is at ``i``. If the digits are not to be rewritten,
    ``start`` is -1, and ``stop`` is where to continue."""
    j = digits_end(data, i, end)
    identifier = uuid_end(data, begin, i, j, end)
    if identifier > i:
        return _skipped(identifier)
    start, whole = i, j
    is_unit = False
    own_point = i > begin and byte_at(data, i - 1) == _POINT
    if own_point:
        if operand_before(data, begin, i - 1):
            return _skipped(exponent_end(data, j, end))
        start = i - 1
    elif i != fresh:
        is_letter = letter_before(data, begin, i)
        is_unit = is_letter and flags & _UNITS != 0 and unit_before(data, begin, i)
        if other_digit_before(data, begin, i) or (is_letter and not is_unit):
            return _skipped(j)
    is_grouped = False
    if not own_point:
        whole, is_grouped = _groups_end(data, begin, i, j, end, flags)
    stop = whole
    if not own_point and _point_and_digit(data, stop, end):
        stop = digits_end(data, stop + 1, end)
    elif not own_point and stop < end and byte_at(data, stop) == _POINT:  # 2.e-3
        stop += exponent_end(data, stop + 1, end) > stop + 1
    if _point_and_digit(data, stop, end):  # 1.2.3
        while _point_and_digit(data, stop, end):
            stop = digits_end(data, stop + 1, end)
        return _skipped(stop)
    if is_unit and not ends_quantity(data, exponent_end(data, stop, end), end):
        return _skipped(j)
    return _Digits(
        start=start,
        digits=j,
        whole=whole,
        stop=stop,
        is_grouped=np.int64(is_grouped),
        is_unit=np.int64(is_unit),
    )


@helper
def _ends_in_groups(data, begin, i, j, end, flags):  # type: ignore[no-untyped-def]
    """Return whether the denominator of the fraction ``data[i:j]`` is the first of groups of
    digits, as in ``1/2,500``; blanks do not separate its groups."""
    k = j
    while k > i and is_digit_byte(byte_at(data, k - 1)):
        k -= 1
    return k < j and _groups_end(data, begin, k, j, end, flags & ~SPACE)[0] > j


@helper
def _rest_of(data, begin, i, number, end, flags):  # type: ignore[no-untyped-def]
    """Return what follows a mantissa whose first digit is at ``i``: at most one of a power of ten,
    a fraction and a suffix."""
    zero, none = np.int64(0), np.int64(_NONE)
    stop = exponent_end(data, number.stop, end)
    if stop > number.stop:
        return _Rest(stop, none, zero, zero)
    is_integer = stop == number.whole and number.start == i
    last = byte_at(data, i - 1) if i > begin else np.uint8(0)
    if flags & _POWERS:
        exponent, after = times_power_at(data, stop, end)
        if after > stop:
            return _Rest(after, np.int64(_SCALED), exponent, zero)
        exponent, after = power_at(data, i, end)
        if after > i and is_integer and stop == number.digits and last != _CARET:
            return _Rest(after, np.int64(_BARE_POWER), exponent, zero)
    if flags & _FRACTIONS and is_integer and last != _SLASH:
        above, below, after = ratio_at(data, i, stop, end)
        if below > 0 and not _ends_in_groups(data, begin, i, after, end, flags):
            return _Rest(after, np.int64(_RATIO), above, below)
    if flags & _SUFFIXES:
        exponent, after = suffix_at(data, stop, end)
        if after > stop:
            return _Rest(after, np.int64(_SCALED), exponent, zero)
    return _Rest(stop, none, zero, zero)


@helper
def _is_times(data, i, number, rest, end):  # type: ignore[no-untyped-def]
    """Return whether an x separates a number, whose first digit is at ``i``, from the next one. In
    ``0x1F`` it does not."""
    k = rest.stop
    if k - i == 1 and number.start == i and byte_at(data, i) == _ZERO:
        return False
    return k < end and byte_at(data, k) | _LOWER == _X and is_digit_at(data, k + 1, end)


@helper
def _write(data, out, o, number, rest):  # type: ignore[no-untyped-def]
    """Write a number in the notation of the scanner at ``o``, and return its end."""
    if rest.kind == _RATIO:
        return write_ratio(out, o, rest.first, rest.second)
    is_scaled = rest.kind == _SCALED or rest.kind == _BARE_POWER
    if rest.kind == _BARE_POWER:
        out[o] = _ONE
        o += 1
    else:
        for k in range(number.start, number.whole):
            if not number.is_grouped or is_digit_byte(byte_at(data, k)):
                out[o] = byte_at(data, k)
                o += 1
        after = number.stop if is_scaled else rest.stop
        copy_bytes(out, o, data, number.whole, after - number.whole)
        o += after - number.whole
    if is_scaled:
        # With a sign, because digits with a bare exponent can be a hash.
        out[o] = _E
        out[o + 1] = _MINUS if rest.first < 0 else _PLUS
        o = write_integer(out, o + 2, abs(rest.first))
    return o


@kernel(
    int64(
        reads(uint8), reads(int32), int64, writes(uint8), writes(int32),
        writes(int32), writes(int32), writes(int32), writes(int32), writes(int64),
    )
)  # fmt: skip
def _rewrite(data, rows, flags, out, out_rows, outs, out_ends, ins, in_ends, size):  # type: ignore[no-untyped-def]
    """Rewrite numbers; see :meth:`Rewritten.by`."""
    o = np.int64(0)
    edits = 0
    for row in range(len(rows) - 1):
        begin, end = np.int64(rows[row]), np.int64(rows[row + 1])
        out_rows[row] = o
        copied = begin  # everything before it has been written
        fresh = np.int64(-1)  # digits here follow the x between two dimensions
        i = begin
        while True:
            i = next_anchor(data, i, end, flags & _FRACTIONS != 0, False)
            if i >= end:
                break
            zero, none = np.int64(0), np.int64(-1)
            if byte_at(data, i) >= HIGH:
                above, below, width = vulgar_at(data, i, end)
                number = _Digits(start=i, digits=i, whole=i, stop=i, is_grouped=zero, is_unit=zero)
                rest = _Rest(i + width, np.int64(_RATIO), above, below)
                if not stands_alone(data, begin, i, rest.stop, end):
                    i = rest.stop
                    continue
            else:
                number = _mantissa_at(data, begin, i, end, flags, fresh)
                if number.start < 0:
                    i = number.stop
                    continue
                rest = _rest_of(data, begin, i, number, end, flags)
            first, stop = number.start, rest.stop
            is_percent = is_spaced = False
            if flags & _PERCENT:
                gap = width_of(SPACES, data, stop, end)
                is_percent = stop + gap < end and byte_at(data, stop + gap) == _PERCENT_SIGN
                is_spaced = is_percent and gap > 0
                stop += (gap + 1) * is_percent
            minus = False
            bracket = none
            if not number.is_unit:
                if flags & _PAREN and stop < end and byte_at(data, stop) == _CLOSE:
                    bracket = bracket_before(data, begin, first)
                if bracket >= 0:
                    first, stop = bracket, stop + 1
                    minus = True
                elif flags & _TRAILING:
                    width = minus_after(data, begin, first, stop, end)
                    stop += width
                    minus = width > 0
            else:
                copy_bytes(out, o, data, copied, first - copied)
                o += first - copied
                copied = first
                out[o] = _BLANK
                outs[edits], out_ends[edits] = o, o + 1
                ins[edits] = in_ends[edits] = first
                edits += 1
                o += 1
            at, i = i, rest.stop
            is_other = rest.kind != _NONE
            if number.is_grouped or is_other or is_spaced or minus:
                copy_bytes(out, o, data, copied, first - copied)
                o += first - copied
                outs[edits] = o
                is_ratio = rest.kind == _RATIO
                if is_ratio and first > begin and byte_at(data, first - 1) == _COMMA:
                    out[o] = _BLANK  # the quotient does not end a group of digits
                    o += 1
                if minus:
                    out[o] = _MINUS
                    o += 1
                o = _write(data, out, o, number, rest)
                if is_percent:
                    out[o] = _PERCENT_SIGN
                    o += 1
                next_byte = byte_at(data, stop) if stop < end else np.uint8(0)
                is_open = flags & _PERCENT and next_byte == _PERCENT_SIGN
                if (minus or is_ratio) and not is_open:
                    # The next characters must not continue the number.
                    out[o] = _CLOSE if bracket >= 0 or not minus else _MINUS
                    o += 1
                out_ends[edits] = o
                ins[edits], in_ends[edits] = first, stop
                edits += 1
                copied = i = stop
            if flags & _DIMENSIONS and _is_times(data, at, number, rest, end):
                copy_bytes(out, o, data, copied, rest.stop - copied)
                o += rest.stop - copied
                out[o] = _BLANK
                o += 1
                copied = fresh = rest.stop + 1
        copy_bytes(out, o, data, copied, end - copied)
        o += end - copied
    out_rows[len(rows) - 1] = o
    size[0] = o
    return edits


def rewrite_numbers(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> Rewritten:
    """Rewrite the numbers of texts that are in a notation of the policy. Raises DataError if the
    result has more than 2 GiB."""
    flags = sum(_FLAGS.get(flag.rpartition("=")[2], 0) for flag in policy.flags())
    growth = GROWTH if policy.fractions else 3
    return Rewritten.by(_rewrite, data, rows, growth=growth, options=(flags,))
