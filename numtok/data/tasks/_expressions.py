"""Sample arithmetic expressions, evaluate them exactly and write them as rows of JSONL.

A shape is a text with ``x`` for operands and ``?`` for operators, such as ``((x?x)?(x?x))``. An
expression consists of a shape, operands and operators, so all expressions for given settings can be
numbered. :func:`draw` goes through the numbers in the order of a keyed permutation. A single pass
over the shape writes the expression, evaluates it with a stack, and computes the hash that
determines its split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.tasks._unrepeated import keys_of, mix, permuted
from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.kernel_types import boolean, int64, reads, uint8, uint64, writes
from numtok.kernels import inlined, kernel

_OPERAND, _OPERATOR, _OPEN, _CLOSE = ord("x"), ord("?"), ord("("), ord(")")
_PLUS, _MINUS, _TIMES, _SPACE, _POINT, _ZERO = (ord(c) for c in "+-* .0")
_POWERS = 10 ** np.arange(19)
_TO_PLACE = 64 - (SHARES.bit_length() - 1)  # number of low bits of a hash that are dropped
_MOST = 1 << 62  # maximum position in the permutation
_INTEGER = 21  # maximum characters of a decimal of 64 bits: 19 digits, sign, point


class Operands(NamedTuple):
    """The numbers ``(first + i) * step`` for 0 <= i < ``size``, with ``places`` decimal places."""

    first: int
    size: int
    step: int
    places: int

    @property
    def width(self) -> int:
        """Maximum number of characters of a decimal, including the sign and the point."""
        ends = (self.first, self.first + self.size - 1)
        return max(len(str(end * self.step)) for end in ends) + self.places + 2


@dataclass(frozen=True, kw_only=True)
class Space:
    """All expressions for given settings, and the format of their rows.

    shapes
        Shapes of equal length (see the module).
    operands
        Sets of decimals, in order; all decimals are equally likely.
    group
        Members of the row's ``group`` other than the operator, as JSON, such as ``"operands":2``.
    """

    shapes: Sequence[str]
    operators: str
    operands: Sequence[Operands]
    spaces: bool
    group: str

    @property
    def slots(self) -> int:
        """Number of operands of one expression."""
        return self.shapes[0].count("x")

    @property
    def halves(self) -> tuple[int, int]:
        """Two factors of :attr:`size`: the choices of shape, operators and the first half of the
        operands, and the choices of the other operands."""
        values = sum(part.size for part in self.operands)
        structures = len(self.shapes) * len(self.operators) ** (self.slots - 1)
        first = self.slots // 2
        return structures * values**first, values ** (self.slots - first)

    @property
    def size(self) -> int:
        """Number of expressions."""
        left, right = self.halves
        return left * right

    @property
    def text_bytes(self) -> int:
        """Upper bound on the length of a text: shape, operands, operators, spaces and value."""
        widest = max(part.width for part in self.operands)
        return len(self.shapes[0]) + self.slots * (widest + 2) + 3 + _INTEGER


@lru_cache
def shapes(operands: int) -> tuple[str, ...]:
    """Return the shapes of all binary trees with this many operands (a Catalan number of shapes).

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
    """Write ``value / 10**places`` with ``places`` decimals; return the end of the text."""
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
    """Decimal with this index among all operands, as (value, places)."""
    k = 0
    while index >= operands[k + 1]:
        index -= operands[k + 1]
        k += 4
    return (operands[k] + index) * operands[k + 2], operands[k + 3]


@inlined
def _combined(operator, value, places, hashed, value2, places2, hashed2):  # type: ignore[no-untyped-def]
    """Evaluate ``a operator b`` as (value, places, hash). The hash of a sum or a product does not
    depend on the order of its sides."""
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
    """Write an expression; return (end, value, places, hash, root operator).

    ``stack`` holds the values, places and operators that wait for their right side.
    """
    room = len(hashes)
    depth = waiting = operand = operator = 0
    root = 0
    # The shape of a product has no brackets, so it is evaluated at the end of the shape.
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
    """Decode the halves of a number to operators and operands; return the index of the shape."""
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
    """Write a row starting at the equals sign; ``begin`` is the start of its text."""
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
        reads(uint8), uint64, reads(uint8), reads(int64), boolean,
        uint64, uint64, int64, int64, reads(uint8), reads(uint8),
        writes(int64), writes(int64), writes(int64), writes(uint64), writes(uint8),
    )
)  # fmt: skip
def _draw(  # type: ignore[no-untyped-def]
    position, last, left, right, keys,
    shapes, shape_count, operators, operands, spaced,
    begin, end, row, wanted, prefix, group,
    indices, chosen, stack, hashes, out,
):  # fmt: skip
    values = np.uint64(0)
    for k in range(1, len(operands), 4):
        values += np.uint64(operands[k])
    width = len(shapes) // np.int64(shape_count)
    count = at = 0
    while count < wanted and position < last:
        p, q = permuted(position, left, right, keys[1:])
        position += np.uint64(1)
        index = _choose(p, q, shape_count, operators, values, indices, chosen)
        shape = shapes[index * width : (index + 1) * width]
        text = _write(out, _write_decimal(out, _write(out, at, prefix), row + count, 0), _TEXT)
        stop, value, places, hashed, root = _walk(
            out, text, shape, indices, chosen, operands, spaced, keys[0], stack, hashes
        )
        if begin <= hashed >> np.uint64(_TO_PLACE) < end:
            at = _write_rest(out, stop, text, value, places, root, spaced, group)
            count += 1
    return at


def draw(
    space: Space, seed: int, split: TaskSplit, positions: range, row: int, wanted: int
) -> bytes:
    """Return up to ``wanted`` expressions of a split as rows of JSONL.

    Only ``positions`` of the permutation are searched. Ids are ``SPLIT-NUMBER``, numbered from
    ``row``.
    """
    prefix, group = _bytes(f'{{"id":"{split.name}-'), _bytes(space.group)
    fixed = sum(map(len, (prefix, _TEXT, _TARGETS, _ANSWER_START, _GROUP, group, _ROOT, _END)))
    row_bytes = fixed + space.text_bytes + 4 * _INTEGER + 2  # id and offsets; comma, operator
    out = np.empty((wanted + 1) * row_bytes, np.uint8)  # one more for discarded expressions
    keys = np.concatenate([keys_of(seed, "split", 1), keys_of(seed, "draw")])
    slots = space.slots
    size = _draw(
        min(positions.start, _MOST), min(positions.stop, _MOST), *space.halves, keys,
        _bytes("".join(space.shapes)), len(space.shapes), _bytes(space.operators),
        np.array(space.operands, np.int64).reshape(-1), space.spaces,
        split.begin, split.end, row, wanted,
        prefix, group,
        np.empty(slots, np.int64), np.empty(slots - 1, np.int64),
        np.empty(3 * slots, np.int64), np.empty(slots, np.uint64), out,
    )  # fmt: skip
    return out[:size].tobytes()


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("ascii"), np.uint8)
