"""Lines of JSONL: where they are, which need a closer look, and what is wrong with one."""

import json
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numba import boolean, int32, int64, uint8
from numba.types import UniTuple
from numpy.typing import NDArray

from numtok.kernels import byte_at, kernel, reads, writes

_NEWLINE, _QUOTE, _BACKSLASH, _COLON = ord("\n"), ord('"'), ord("\\"), ord(":")
_OPEN, _CLOSE, _SPACE = ord("{"), ord("}"), ord(" ")
_MOST_KEYS, _DEEPEST = 256, 32


class Lines(NamedTuple):
    """The lines of a block that are not blank."""

    starts: NDArray[np.int64]  # [n] offsets in the block
    ends: NDArray[np.int64]  # [n]
    numbers: NDArray[np.int32]  # [n] lines before it in the block, blank ones too
    suspicious: NDArray[np.bool_]  # [n] an object may have the same key twice
    count: int  # lines in all, blank ones too


@kernel(
    UniTuple(int64, 2)(
        reads(uint8), writes(int64), writes(int64), writes(int32), writes(boolean)
    )
)
def _find_lines(data, starts, ends, numbers, suspicious):  # type: ignore[no-untyped-def]
    """Keys of one object are compared by hash: an equal pair, an escaped key, or more keys or
    levels than are kept here make a line suspicious, nothing else does."""
    size = len(data)
    keys = np.empty(_MOST_KEYS, np.uint64)
    firsts = np.empty(_DEEPEST + 1, np.int64)
    found = 0
    number = 0
    i = 0
    while i < size:
        start = i
        blank = True
        doubt = False
        depth = 0
        used = 0
        firsts[0] = 0
        while i < size and byte_at(data, i) != _NEWLINE:
            c = byte_at(data, i)
            i += 1
            if c > _SPACE:
                blank = False
            if c == _QUOTE:
                begin = i
                escaped = False
                while i < size and byte_at(data, i) != _QUOTE and byte_at(data, i) != _NEWLINE:
                    if byte_at(data, i) == _BACKSLASH:
                        escaped = True
                        if i + 1 < size and byte_at(data, i + 1) != _NEWLINE:
                            i += 1
                    i += 1
                end = i
                if i < size and byte_at(data, i) == _QUOTE:
                    i += 1
                after = i
                while after < size and byte_at(data, after) <= _SPACE and byte_at(data, after) != _NEWLINE:
                    after += 1
                if after < size and byte_at(data, after) == _COLON:
                    code = np.uint64(0xCBF29CE484222325)
                    for k in range(begin, end):
                        code = (code ^ np.uint64(byte_at(data, k))) * np.uint64(0x100000001B3)
                    for k in range(firsts[depth], used):
                        doubt |= keys[k] == code
                    doubt |= escaped
                    if used < _MOST_KEYS:
                        keys[used] = code
                        used += 1
                    else:
                        doubt = True
            elif c == _OPEN:
                if depth < _DEEPEST:
                    depth += 1
                    firsts[depth] = used
                else:
                    doubt = True
            elif c == _CLOSE and depth > 0:
                used = firsts[depth]
                depth -= 1
        if not blank:
            starts[found] = start
            ends[found] = i
            numbers[found] = number
            suspicious[found] = doubt
            found += 1
        number += 1
        i += 1
    return found, number


def find_lines(block: bytes) -> Lines:
    """The lines of a block of JSONL.

    >>> find_lines(b'{"text": "a", "text": "b"}\\n\\n').suspicious
    array([ True])
    """
    room = block.count(b"\n") + 1
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    numbers, suspicious = np.empty(room, np.int32), np.empty(room, np.bool_)
    found, count = _find_lines(np.frombuffer(block, np.uint8), starts, ends, numbers, suspicious)
    return Lines(starts[:found], ends[:found], numbers[:found], suspicious[:found], count)


class _Twice(ValueError):
    pass


def duplicate_key(line: bytes) -> str | None:
    """A key that some object of a valid line has twice, or None."""

    def refuse(pairs: list[tuple[str, Any]]) -> None:
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)

    try:
        json.loads(line, object_pairs_hook=refuse)
    except _Twice as error:
        return str(error)
    return None


def reason_of(line: bytes, error: Exception) -> str:
    """What is wrong with a line that is no row, in words that say what to do."""
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return (
            f"invalid UTF-8 at byte {broken.start} of the line "
            f"(0x{line[broken.start]:02x}); write the file as UTF-8"
        )
    if isinstance(error, msgspec.ValidationError):
        return f"{error}; a row is an object with a string field for the text"
    if line.startswith(b"\xef\xbb\xbf"):
        return "it begins with a byte order mark; write the file as UTF-8 without one"
    try:
        json.loads(line)
    except ValueError:
        return f"{error}; each line is one JSON object"
    if any(word in line for word in (b"NaN", b"Infinity")):
        return "NaN and Infinity are not JSON; write null, or the text in quotes"
    return r"a string has half a surrogate pair (\ud800 to \udfff), which is no character"
