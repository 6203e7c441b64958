"""Compiled functions that read members and integer pairs of JSON objects as columns.

Like the functions in ``values``, they only read common forms of JSON and return None for others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.reading.values import Values, after, after_space, integer, string_end
from numtok.kernel_types import boolean, int32, int64, reads, uint8, writes
from numtok.kernels import byte_at, inlined, kernel

_QUOTE = ord('"')
_OPEN, _CLOSE, _COLON, _COMMA, _SPACE = ord("{"), ord("}"), ord(":"), ord(","), ord(" ")
_OPEN_LIST, _CLOSE_LIST = ord("["), ord("]")


@inlined
def _after_string(data, i, end):  # type: ignore[no-untyped-def]
    """Offset after the string at ``i``; -1 if it is not a string."""
    if i >= end or byte_at(data, i) != _QUOTE:
        return -1
    i = string_end(data, i, end)
    return i + 1 if i < end else -1


@inlined
def _after_key(data, i, end):  # type: ignore[no-untyped-def]
    """(offset after the key at ``i``, offset of its value); the latter is -1 without a key."""
    key_end = _after_string(data, i, end)
    if key_end < 0:
        return key_end, key_end
    return key_end, after(data, key_end, end, _COLON)


@inlined
def _after_list(data, i, end):  # type: ignore[no-untyped-def]
    """Offset after the list at ``i``; -1 if it contains a string or an object."""
    depth = 0
    while i < end:
        c = byte_at(data, i)
        i += 1
        if c == _OPEN_LIST:
            depth += 1
        elif c == _CLOSE_LIST:
            depth -= 1
            if depth == 0:
                return i
        elif c in (_QUOTE, _OPEN):
            return -1
    return -1


@inlined
def _after_plain(data, i, end):  # type: ignore[no-untyped-def]
    """Offset after the number, ``true``, ``false`` or ``null`` at ``i``."""
    while i < end:
        c = byte_at(data, i)
        if c <= _SPACE or c in (_COMMA, _CLOSE):
            break
        i += 1
    return i


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), boolean,
        writes(int32), writes(int32), writes(int32), writes(int32), writes(int32),
    )
)  # fmt: skip
def _read_members(  # type: ignore[no-untyped-def]
    data, starts, ends, lists, owners, key_starts, key_ends, value_starts, value_ends
):
    count = 0
    for n in range(len(starts)):
        end = np.int64(ends[n])
        i = after(data, np.int64(starts[n]), end, _OPEN)
        if i < 0:
            return -1
        more = byte_at(data, i) != _CLOSE
        while more:
            key = i
            key_end, i = _after_key(data, i, end)
            if i < 0 or i >= end:
                return -1
            value = i
            c = byte_at(data, i)
            if lists != (c == _OPEN_LIST) or c == _OPEN:
                return -1
            if lists:
                i = _after_list(data, i, end)
            elif c == _QUOTE:
                i = _after_string(data, i, end)
            else:
                i = _after_plain(data, i, end)
            if i < 0:
                return -1
            owners[count] = n
            key_starts[count] = key
            key_ends[count] = key_end
            value_starts[count] = value
            value_ends[count] = i
            count += 1
            i = after_space(data, i, end)
            more = i < end and byte_at(data, i) == _COMMA
            if more:
                i = after_space(data, i + 1, end)
        if i >= end or byte_at(data, i) != _CLOSE:
            return -1
    return count


class Members(NamedTuple):
    """The ``k`` members (keys with values) of all objects in a block, in order of occurrence."""

    owners: NDArray[np.int32]  # [k] index of the object that contains it
    keys: Values  # [k] with their quotes
    values: Values  # [k] as written


def members_of(values: Values, lists: bool = False) -> Members | None:
    """Read the members of objects such as ``{"a": 1, "b": "x"}``.

    If ``lists`` is true, all values must be lists, as in ``{"a": [[1, 2]], "b": []}``. Returns None
    if ``values`` contains anything else.
    """
    # A member has at least four bytes, as in "":1.
    room = int((values.ends - values.starts).sum(dtype=np.int64)) // 4
    owners, key_starts, key_ends, starts, ends = np.empty((5, room), np.int32)
    count = _read_members(*values, lists, owners, key_starts, key_ends, starts, ends)
    if count < 0:
        return None
    return Members(
        owners[:count],
        Values(values.data, key_starts[:count], key_ends[:count]),
        Values(values.data, starts[:count], ends[:count]),
    )


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), writes(int32), writes(int64), writes(int64)
    )
)  # fmt: skip
def _read_pairs(data, starts, ends, owners, firsts, seconds):  # type: ignore[no-untyped-def]
    count = 0
    for n in range(len(starts)):
        end = np.int64(ends[n])
        i = after(data, np.int64(starts[n]), end, _OPEN_LIST)
        more = i >= 0 and byte_at(data, i) != _CLOSE_LIST
        while more:
            i = after(data, i, end, _OPEN_LIST)
            if i < 0:
                return -1
            first, j = integer(data, i, end)
            i = after(data, j, end, _COMMA) if j > i else -1
            if i < 0:
                return -1
            second, j = integer(data, i, end)
            i = after(data, j, end, _CLOSE_LIST) if j > i else -1
            if i < 0 or i >= end:
                return -1
            owners[count] = n
            firsts[count] = first
            seconds[count] = second
            count += 1
            more = byte_at(data, i) == _COMMA
            if more:
                i = after_space(data, i + 1, end)
        if i < 0 or i + 1 != end or byte_at(data, i) != _CLOSE_LIST:
            return -1
    return count


class Pairs(NamedTuple):
    """The ``k`` integer pairs in objects such as ``{"a": [[1, 2]]}``, in order of occurrence."""

    owners: NDArray[np.int32]  # [k] index of the object that contains it
    keys: Values  # [k] with their quotes
    firsts: NDArray[np.int64]  # [k]
    seconds: NDArray[np.int64]  # [k]


def pairs_in(values: Values) -> Pairs | None:
    """Read the integer pairs in objects such as ``{"a": [[1, 2], [3, 4]], "b": []}``.

    Returns None if ``values`` contains anything else.
    """
    members = members_of(values, lists=True)
    if members is None:
        return None
    # A pair has at least five bytes, as in [1,2].
    room = int((members.values.ends - members.values.starts).sum(dtype=np.int64)) // 5
    owners = np.empty(room, np.int32)
    firsts, seconds = np.empty((2, room), np.int64)
    count = _read_pairs(*members.values, owners, firsts, seconds)
    if count < 0:
        return None
    owners = owners[:count]
    return Pairs(members.owners[owners], members.keys.take(owners), firsts[:count], seconds[:count])
