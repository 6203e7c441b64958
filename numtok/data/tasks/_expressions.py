"""Arithmetic expressions: drawn, evaluated exactly, written as rows of JSONL.

A shape is a text in which ``x`` stands for an operand and ``?`` for an operator:
``((x?x)?(x?x))``. With what stands there it is one expression, so all the
expressions of some settings can be numbered, and :func:`draw` takes numbers in
the order of a keyed permutation. One walk over the shape writes the expression,
evaluates it with a stack, and hashes it to a place that decides its split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import boolean, int64, uint8, uint64
from numpy.typing import NDArray

from numtok.data.tasks._permutation import keys_of, mix, permuted
from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.kernels import inlined, kernel, reads, writes

_OPERAND, _OPERATOR, _OPEN, _CLOSE = ord("x"), ord("?"), ord("("), ord(")")
_PLUS, _MINUS, _TIMES, _SPACE, _POINT, _ZERO = (ord(c) for c in "+-* .0")
_POWERS = 10 ** np.arange(19)
_TO_PLACE = 64 - (SHARES.bit_length() - 1)  # bits of a hash that are left out
_MOST = 1 << 62  # positions that are ever counted to
_INTEGER = 21  # characters of any decimal of 64 bits: 19 digits, sign, point


class Operands(NamedTuple):
    """The decimals ``(first + i) * step`` with ``places`` decimals, for 0 <= i < ``size``."""

    first: int
    size: int
    step: int
    places: int

    @property
    def width(self) -> int:
        """Characters of the longest: sign, digits, a zero before the point, the point."""
        ends = (self.first, self.first + self.size - 1)
        return max(len(str(end * self.step)) for end in ends) + self.places + 2


@dataclass(frozen=True, kw_only=True)
class Space:
    """All expressions of some settings, and how their rows are written.

    shapes
        Of equal length, as said above.
    operands
        In order; all of their decimals are equally likely.
    group
        The members of the row's ``group`` but for the operator, as JSON: ``"operands":2``.
    """

    shapes: Sequence[str]
    operators: str
    operands: Sequence[Operands]
    spaces: bool
    group: str

    @property
    def slots(self) -> int:
        """Operands of one expression."""
        return self.shapes[0].count("x")

    @property
    def halves(self) -> tuple[int, int]:
        """How many choices there are of (shape, operators and half of the operands; the rest)."""
        values = sum(part.size for part in self.operands)
        structures = len(self.shapes) * len(self.operators) ** (self.slots - 1)
        first = self.slots // 2
        return structures * values**first, values ** (self.slots - first)

    @property
    def size(self) -> int:
        """How many expressions there are."""
        left, right = self.halves
        return left * right

    @property
    def text_bytes(self) -> int:
        """No text is longer: the shape, what stands in it, spaces, and the value."""
        widest = max(part.width for part in self.operands)
        return len(self.shapes[0]) + self.slots * (widest + 2) + 3 + _INTEGER


@lru_cache
def shapes(operands: int) -> tuple[str, ...]:
    """Every binary tree with that many operands; their number is a Catalan number.

    >>> shapes(3)
    ('(x?(x?x))', '((x?x)?x)')
    """
    if operands == 1:
        return ("x",)
    return tuple(
        f"({left}?{right})"
        for first in range(1, operands)
        for left in shapes(first)
        for right in shapes(operands - first)
    )


# --- writing -----------------------------------------------------------------------------------


@inlined
def _write_decimal(out, at, value, places):  # type: ignore[no-untyped-def]
    """Write ``value / 10**places`` with that many decimals; where the text ends."""
    if value < 0:
        out[at] = _MINUS
        at += 1
        value = -value
    digits = 1
    while digits < 19 and value >= _POWERS[digits]:
        digits += 1
    digits = max(digits, places + 1)
    end = at + digits + (places > 0)
    at = end
    for digit in range(digits):
        if digit == places and places > 0:
            at -= 1
            out[at] = _POINT
        at -= 1
        out[at] = _ZERO + value % 10
        value //= 10
    return end


@inlined
def _write(out, at, text):  # type: ignore[no-untyped-def]
    for byte in text:
        out[at] = byte
        at += 1
    return at


@inlined
def _write_operator(out, at, operator, spaced):  # type: ignore[no-untyped-def]
    if spaced:
        out[at] = _SPACE
        out[at + 2] = _SPACE
        at += 1
    out[at] = operator
    return at + 1 + spaced


# --- one expression ----------------------------------------------------------------------------


@inlined
def _operand(index, operands):  # type: ignore[no-untyped-def]
    """The decimal of an index among all operands, as (value, places)."""
    k = 0
    while index >= operands[k + 1]:
        index -= operands[k + 1]
        k += 4
    return (operands[k] + index) * operands[k + 2], operands[k + 3]


@inlined
def _combined(operator, value, places, hashed, value2, places2, hashed2):  # type: ignore[no-untyped-def]
    """``a operator b`` as (value, places, hash). The hash of a sum or a product is the same for
    both orders of its sides."""
    salt = np.uint64(operator)
    if operator == _TIMES:
        return value * value2, places + places2, mix(hashed + hashed2 + salt)
    if places < places2:
        value *= _POWERS[places2 - places]
        places = places2
    elif places2 < places:
        value2 *= _POWERS[places - places2]
    if operator == _PLUS:
        return value + value2, places, mix(hashed + hashed2 + salt)
    return value - value2, places, mix(hashed + mix(hashed2) + salt)


@inlined
def _walk(out, at, shape, indices, chosen, operands, spaced, key, stack, hashes):  # type: ignore[no-untyped-def]
    """Write an expression; (where it ends, value, places, hash, root operator).

    ``stack`` has room for the values, places and operators that wait for their other side.
    """
    room = len(hashes)
    depth = waiting = operand = operator = 0
    root = 0
    # A product has no brackets, so what is open at the end of its shape is combined there.
    for k in range(len(shape) + 1):
        byte = shape[k] if k < len(shape) else _CLOSE
        if byte == _OPERAND:
            value, places = _operand(indices[operand], operands)
            at = _write_decimal(out, at, value, places)
            stack[depth], stack[room + depth] = value, places
            hashes[depth] = mix(key + np.uint64(value * 32 + places))
            operand += 1
            depth += 1
        elif byte == _OPERATOR:
            stack[2 * room + waiting] = chosen[operator]
            at = _write_operator(out, at, chosen[operator], spaced)
            operator += 1
            waiting += 1
        elif byte == _OPEN:
            out[at] = _OPEN
            at += 1
        else:
            if waiting > 0:
                waiting -= 1
                depth -= 1
                root = stack[2 * room + waiting]
                a, b = depth - 1, depth
                stack[a], stack[room + a], hashes[a] = _combined(
                    root, stack[a], stack[room + a], hashes[a], stack[b], stack[room + b], hashes[b]
                )
            if k < len(shape):
                out[at] = _CLOSE
                at += 1
    return at, stack[0], stack[room], hashes[0], root


@inlined
def _choose(p, q, shape_count, operators, values, indices, chosen):  # type: ignore[no-untyped-def]
    """Read the halves of a number as operators and operands; the index of the shape."""
    shape = p % shape_count
    p //= shape_count
    kinds = np.uint64(len(operators))
    for k in range(len(chosen)):
        chosen[k] = operators[p % kinds]
        p //= kinds
    first = len(indices) // 2
    for k in range(first):
        indices[k] = p % values
        p //= values
    for k in range(first, len(indices)):
        indices[k] = q % values
        q //= values
    return np.int64(shape)


_TEXT = np.frombuffer(b'","text":"', np.uint8)
_TARGETS = np.frombuffer(b'","targets":{"answer":[[', np.uint8)
_ANSWER_START = np.frombuffer(b']]},"answer_start":', np.uint8)
_GROUP = np.frombuffer(b',"group":{', np.uint8)
_ROOT = np.frombuffer(b',"operator":"', np.uint8)
_END = np.frombuffer(b'"}}\n', np.uint8)


@inlined
def _write_rest(out, at, begin, value, places, root, spaced, group):  # type: ignore[no-untyped-def]
    """Write a row from the equals sign on; ``begin`` is where its text begins."""
    at = _write_operator(out, at, ord("="), spaced)
    while places > 0 and value % 10 == 0:
        value //= 10
        places -= 1
    start = at - begin
    at = _write_decimal(out, at, value, places)
    end = at - begin
    at = _write(out, at, _TARGETS)
    at = _write_decimal(out, at, start, 0)
    out[at] = ord(",")
    at = _write_decimal(out, at + 1, end, 0)
    at = _write(out, at, _ANSWER_START)
    at = _write_decimal(out, at, start, 0)
    at = _write(out, _write(out, at, _GROUP), group)
    at = _write(out, at, _ROOT)
    out[at] = root
    return _write(out, at + 1, _END)


# --- many expressions --------------------------------------------------------------------------


@kernel(
    int64(
        uint64, uint64, uint64, uint64, reads(uint64),
        reads(uint8), uint64, reads(uint8), reads(int64), int64, boolean,
        uint64, uint64, int64, int64, reads(uint8), reads(uint8), writes(uint8),
    )
)  # fmt: skip
def _draw(  # type: ignore[no-untyped-def]
    position, last, left, right, keys,
    shapes, shape_count, operators, operands, slots, spaced,
    begin, end, row, wanted, prefix, group, out,
):  # fmt: skip
    values = np.uint64(0)
    for k in range(1, len(operands), 4):
        values += np.uint64(operands[k])
    indices, chosen = np.empty(slots, np.int64), np.empty(slots - 1, np.int64)
    stack, hashes = np.empty(3 * slots, np.int64), np.empty(slots, np.uint64)
    width = len(shapes) // np.int64(shape_count)
    found = at = 0
    while found < wanted and position < last:
        p, q = permuted(position, left, right, keys[1:])
        position += np.uint64(1)
        index = _choose(p, q, shape_count, operators, values, indices, chosen)
        shape = shapes[index * width : (index + 1) * width]
        text = _write(out, _write_decimal(out, _write(out, at, prefix), row + found, 0), _TEXT)
        stop, value, places, hashed, root = _walk(
            out, text, shape, indices, chosen, operands, spaced, keys[0], stack, hashes
        )
        if begin <= hashed >> np.uint64(_TO_PLACE) < end:
            at = _write_rest(out, stop, text, value, places, root, spaced, group)
            found += 1
    return at


def draw(
    space: Space, seed: int, split: TaskSplit, positions: range, row: int, wanted: int
) -> bytes:
    """The first ``wanted`` expressions of a split among some positions of the permutation, or
    what there is of them: rows of JSONL, the first with the id ``split-row``."""
    prefix, group = _bytes(f'{{"id":"{split.name}-'), _bytes(space.group)
    fixed = sum(map(len, (prefix, _TEXT, _TARGETS, _ANSWER_START, _GROUP, group, _ROOT, _END)))
    row_bytes = fixed + space.text_bytes + 4 * _INTEGER + 2  # id and offsets; comma, operator
    out = np.empty((wanted + 1) * row_bytes, np.uint8)  # one more for what is drawn in vain
    keys = np.concatenate([keys_of(seed, "split", 1), keys_of(seed, "draw")])
    size = _draw(
        min(positions.start, _MOST), min(positions.stop, _MOST), *space.halves, keys,
        _bytes("".join(space.shapes)), len(space.shapes), _bytes(space.operators),
        np.array(space.operands, np.int64).reshape(-1), space.slots, space.spaces,
        split.begin, split.end, row, wanted,
        prefix, group, out,
    )  # fmt: skip
    return out[:size].tobytes()


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("ascii"), np.uint8)
