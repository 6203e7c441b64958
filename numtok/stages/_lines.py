"""Lines of JSONL: where they are, which need a closer look, and what is wrong with one."""

import json
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np
from numba import boolean, int32, int64, types, uint8
from numpy.typing import NDArray

from numtok.kernels import byte_at, inlined, kernel, reads, writes

_NEWLINE, _QUOTE, _BACKSLASH, _COLON = ord("\n"), ord('"'), ord("\\"), ord(":")
_OPEN, _CLOSE, _SPACE = ord("{"), ord("}"), ord(" ")
_TAB, _RETURN = ord("\t"), ord("\r")
_MOST_KEYS, _DEEPEST = 256, 32

_PLAIN = np.zeros(256, np.bool_)  # bytes that mean nothing special in a string
_PLAIN[:0x80] = True
_PLAIN[[_NEWLINE, _QUOTE, _BACKSLASH]] = False


class Lines(NamedTuple):
    """The lines of a block that are not blank.

    A suspicious line may be something else than one object of distinct keys in UTF-8. That needs
    a look of its own, because msgspec takes several objects on a line and one over several lines,
    the last of two equal keys, and any bytes in a field that it skips.
    """

    starts: NDArray[np.int64]  # [n] offsets in the block
    ends: NDArray[np.int64]  # [n]
    numbers: NDArray[np.int32]  # [n] lines before it in the block, blank ones too
    suspicious: NDArray[np.bool_]  # [n]
    total: int  # lines in all, blank ones too


@inlined
def _character(data, i, end):  # type: ignore[no-untyped-def]
    """The bytes of the UTF-8 character that begins at ``i`` with a byte over 0x7F; 0 if none."""
    first = byte_at(data, i)
    low, high, length = 0x80, 0xBF, 0
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
        if first == 0xE0:
            low = 0xA0  # below are characters that have two bytes
        elif first == 0xED:
            high = 0x9F  # above are surrogates
    elif 0xF0 <= first <= 0xF4:
        length = 4
        if first == 0xF0:
            low = 0x90
        elif first == 0xF4:
            high = 0x8F
    if length == 0 or i + length > end or not low <= byte_at(data, i + 1) <= high:
        return 0
    for k in range(i + 2, i + length):
        if not 0x80 <= byte_at(data, k) <= 0xBF:
            return 0
    return length


@kernel(
    types.UniTuple(int64, 2)(  # type: ignore[no-untyped-call]
        reads(uint8), writes(int64), writes(int64), writes(int32), writes(boolean)
    )
)
def _find_lines(data, starts, ends, numbers, suspicious):  # type: ignore[no-untyped-def]
    """A line is suspicious unless braces and quotes say that it is one object. Keys are compared
    by hash: an equal pair, an escaped key, or more keys or levels than are kept here make a line
    suspicious too, and so does a string that is not UTF-8."""
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
        objects = 0
        used = 0
        firsts[0] = 0
        while i < size and byte_at(data, i) != _NEWLINE:
            c = byte_at(data, i)
            i += 1
            if c != _SPACE and c != _TAB and c != _RETURN:
                blank = False
            if c == _QUOTE:
                begin = i
                escaped = False
                while i < size:
                    c = byte_at(data, i)
                    if _PLAIN[c]:
                        i += 1
                    elif c in (_QUOTE, _NEWLINE):
                        break
                    elif c == _BACKSLASH:
                        escaped = True
                        i += 1
                        if i < size and byte_at(data, i) != _NEWLINE:
                            i += 1
                    else:
                        length = _character(data, i, size)
                        doubt |= length == 0
                        i += max(1, length)
                end = i
                if i < size and byte_at(data, i) == _QUOTE:
                    i += 1
                after = i
                while (
                    after < size
                    and byte_at(data, after) <= _SPACE
                    and byte_at(data, after) != _NEWLINE
                ):
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
                objects += depth == 0
                if depth < _DEEPEST:
                    depth += 1
                    firsts[depth] = used
                else:
                    doubt = True
            elif c == _CLOSE:
                if depth > 0:
                    used = firsts[depth]
                    depth -= 1
                else:
                    doubt = True
        if not blank:
            starts[found] = start
            ends[found] = i
            numbers[found] = number
            suspicious[found] = doubt or depth != 0 or objects != 1
            found += 1
        number += 1
        i += 1
    return found, number


def find_lines(block: bytes) -> Lines:
    """The lines of a block of JSONL.

    >>> find_lines(b'{"text": "a", "text": "b"}\\n\\n').suspicious
    array([ True])
    """
    room = len(block) // 2 + 1  # a line that is not blank has two bytes; untouched pages are free
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    numbers, suspicious = np.empty(room, np.int32), np.empty(room, np.bool_)
    found, count = _find_lines(np.frombuffer(block, np.uint8), starts, ends, numbers, suspicious)
    return Lines(starts[:found], ends[:found], numbers[:found], suspicious[:found], count)


class _Twice(Exception):
    pass


class _Constant(Exception):
    pass


#: What decoding raises for a line that is no row.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def problem_of(line: bytes, decoder: "msgspec.json.Decoder[Any]") -> str | None:
    """What is wrong with a suspicious line, or None if nothing is."""
    try:
        text = line.decode()
        decoder.decode(line)
        # Numbers stay strings, because Python refuses integers of more than 4300 digits.
        json.loads(text, object_pairs_hook=_refuse_twice, parse_int=str, parse_float=str)
    except _Twice as error:
        return f"the key {str(error)!r} is there twice; each key may be there once"
    except UNREADABLE as error:
        return reason_of(line, error)
    return None


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise _Twice(key)
        seen.add(key)


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def reason_of(line: bytes, error: Exception) -> str:
    """What is wrong with a line that is no row, in words that say what to do."""
    for magic, name in (
        (b"\x1f\x8b", "gzip (.jsonl.gz)"),
        (b"\x28\xb5\x2f\xfd", "zstd (.jsonl.zst)"),
    ):
        if line.startswith(magic):
            return f"this looks like {name}; give the file that ending, or unpack it first"
    try:
        text = line.decode()
    except UnicodeDecodeError as broken:
        return (
            f"invalid UTF-8 at byte {broken.start} of the line "
            f"(0x{line[broken.start]:02x}); write the file as UTF-8"
        )
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be read; leave out the field with the nesting"
    if isinstance(error, msgspec.ValidationError):
        return validation_reason(str(error))
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark; write the file as UTF-8 without one"
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_int=str, parse_float=str)
    except _Constant as constant:
        return f"{constant} is not JSON; write null, or a string"
    except (ValueError, RecursionError):
        if "truncated" in str(error):
            return "the JSON object goes on after the line; each line is one (jq -c . makes it so)"
        return f"{error}; each line is one JSON object"
    return (
        r"a string has half a surrogate pair (\ud800 to \udfff), which is no character; "
        r"write the other half, or \ufffd"
    )


def validation_reason(message: str) -> str:
    """What msgspec says about JSON that is no row, and what to do about it.

    >>> validation_reason("Object missing required field `text`")
    'Object missing required field `text`; name the field that holds the text by --text-field'
    """
    if "missing required field" in message:
        return f"{message}; name the field that holds the text by --text-field"
    if message.startswith("Expected `object`,") and " - at " not in message:
        return f"{message}; each line is one JSON object (jq -c '.[]' makes it so from an array)"
    if message.startswith("Expected `str`,"):
        return f"{message}; it must be a string"
    return message
