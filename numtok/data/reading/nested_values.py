"""Members and pairs of JSON objects where they stand in a block of lines, as columns, compiled; of
plain forms alone, as ``values``."""

from typing import NamedTuple

import numpy as np
from numba import boolean, int32, int64, uint8
from numpy.typing import NDArray

from numtok.data.reading.values import Values, after, after_space, integer, string_end
from numtok.kernels import byte_at, inlined, kernel, reads, writes

_QUOTE = ord('"')
_OPEN, _CLOSE, _COLON, _COMMA, _SPACE = ord("{"), ord("}"), ord(":"), ord(","), ord(" ")
_OPEN_LIST, _CLOSE_LIST = ord("["), ord("]")


@inlined
def _after_string(data, i, end):  # type: ignore[no-untyped-def]
    """The place behind the string at ``i``, -1 if there is none."""
    if i >= end or byte_at(data, i) != _QUOTE:
        return -1
    i = string_end(data, i, end)
    return i + 1 if i < end else -1


@inlined
def _after_key(data, i, end):  # type: ignore[no-untyped-def]
    """(the place behind the key at ``i``, that of its value); the latter -1 if there is no key."""
    key_end = _after_string(data, i, end)
    if key_end < 0:
        return key_end, key_end
    return key_end, after(data, key_end, end, _COLON)


@inlined
def _after_list(data, i, end):  # type: ignore[no-untyped-def]
    """The place behind the list at ``i``, -1 if a string or an object is in it."""
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
    """The place behind the number, ``true``, ``false`` or ``null`` at ``i``."""
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
    found = 0
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
            owners[found] = n
            key_starts[found] = key
            key_ends[found] = key_end
            value_starts[found] = value
            value_ends[found] = i
            found += 1
            i = after_space(data, i, end)
            more = i < end and byte_at(data, i) == _COMMA
            if more:
                i = after_space(data, i + 1, end)
        if i >= end or byte_at(data, i) != _CLOSE:
            return -1
    return found


class Members(NamedTuple):
    """Members of objects, ``k`` in all, in the order of the block."""

    owners: NDArray[np.int32]  # [k] which object each is of
    keys: Values  # [k] with their quotes
    values: Values  # [k] as written


def members_of(values: Values, lists: bool = False) -> Members | None:
    """The members of objects like ``{"a": 1, "b": "x"}``, or with ``lists`` of those like
    ``{"a": [[1, 2]], "b": []}``; None where a value is something else, or there is no object."""
    # A member has four bytes at least, as in "":1.
    room = int((values.ends - values.starts).sum(dtype=np.int64)) // 4
    owners, key_starts, key_ends, starts, ends = np.empty((5, room), np.int32)
    found = _read_members(*values, lists, owners, key_starts, key_ends, starts, ends)
    if found < 0:
        return None
    return Members(
        owners[:found],
        Values(values.data, key_starts[:found], key_ends[:found]),
        Values(values.data, starts[:found], ends[:found]),
    )


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), writes(int32), writes(int64), writes(int64)
    )
)  # fmt: skip
def _read_pairs(data, starts, ends, owners, firsts, seconds):  # type: ignore[no-untyped-def]
    found = 0
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
            owners[found] = n
            firsts[found] = first
            seconds[found] = second
            found += 1
            more = byte_at(data, i) == _COMMA
            if more:
                i = after_space(data, i + 1, end)
        if i < 0 or i + 1 != end or byte_at(data, i) != _CLOSE_LIST:
            return -1
    return found


class Pairs(NamedTuple):
    """Pairs of integers under keys, ``k`` in all, in the order of the block."""

    owners: NDArray[np.int32]  # [k] which object each is of
    keys: Values  # [k] with their quotes
    firsts: NDArray[np.int64]  # [k]
    seconds: NDArray[np.int64]  # [k]


def pairs_in(values: Values) -> Pairs | None:
    """The pairs of objects like ``{"a": [[1, 2], [3, 4]], "b": []}``; None where one is something
    else."""
    members = members_of(values, lists=True)
    if members is None:
        return None
    # A pair has five bytes at least, as in [1,2].
    room = int((members.values.ends - members.values.starts).sum(dtype=np.int64)) // 5
    owners = np.empty(room, np.int32)
    firsts, seconds = np.empty((2, room), np.int64)
    found = _read_pairs(*members.values, owners, firsts, seconds)
    if found < 0:
        return None
    owners = owners[:found]
    return Pairs(members.owners[owners], members.keys.take(owners), firsts[:found], seconds[:found])
