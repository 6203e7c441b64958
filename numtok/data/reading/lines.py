"""Find JSONL lines and their field values, and flag lines that need a full parse.

The code is compiled for speed. Decoding whole blocks to records with msgspec, and converting the
records to columns, doubled the CPU time of ``numtok encode`` with p1000 on rows of 50 and of 200
bytes (docs/log).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.kernel_types import boolean, int32, int64, pair, reads, uint8, uint64, void, writes
from numtok.kernels import HASH_START, byte_at, has_byte, hashed, inlined, kernel, repeat, word_at
from numtok.row import Row

_NEWLINE, _QUOTE, _BACKSLASH, _COLON = ord("\n"), ord('"'), ord("\\"), ord(":")
_OPEN, _CLOSE, _SPACE, _COMMA = ord("{"), ord("}"), ord(" "), ord(",")
_OPEN_LIST, _CLOSE_LIST = ord("["), ord("]")
_TAB, _RETURN = ord("\t"), ord("\r")
_MOST_KEYS, _DEEPEST = 256, 32

_PLAIN = np.zeros(256, np.bool_)  # bytes without a special meaning in a string
_PLAIN[:0x80] = True
_PLAIN[[_NEWLINE, _QUOTE, _BACKSLASH]] = False
_NEWLINES, _QUOTES, _BACKSLASHES = map(repeat, ("\n", '"', "\\"))
_HIGH_BITS = np.uint64(0x8080808080808080)

#: Fields of a row whose values are located, the text first.
FIELDS = Row.__struct_fields__


class Lines(NamedTuple):
    """The nonblank lines of a block, and the positions of their values.

    A suspicious line may be something other than one UTF-8 object with distinct keys. It needs a
    full parse, because msgspec accepts several objects on a line, an object across several lines,
    duplicate keys, and invalid bytes in a field that it skips. For all other lines, the positions
    of the values are correct if the line is valid JSON, which this module does not check.
    """

    starts: NDArray[np.int64]  # [n] offsets in the block
    ends: NDArray[np.int64]  # [n]
    numbers: NDArray[np.int32]  # [n] number of lines before each in the block, with blank ones
    suspicious: NDArray[np.bool_]  # [n]
    value_starts: NDArray[np.int32]  # [fields, n] offset of each field's value, -1 if absent
    value_ends: NDArray[np.int32]  # [fields, n]
    total: int  # number of lines, including blank ones


@inlined
def _character(data, i, end):  # type: ignore[no-untyped-def]
    """Length of the UTF-8 character that begins at ``i`` with a byte over 0x7F; 0 if invalid."""
    first = byte_at(data, i)
    low, high, length = 0x80, 0xBF, 0
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
        if first == 0xE0:
            low = 0xA0  # smaller values encode characters of two bytes
        elif first == 0xED:
            high = 0x9F  # larger values encode surrogates
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


@inlined
def _string_end(data, i, size):  # type: ignore[no-untyped-def]
    """Find the quote or newline that ends the string at ``i``: (offset, has escapes, is UTF-8)."""
    escaped = False
    valid = True
    while i < size:
        if i + 8 <= size:
            word = word_at(data, i)
            other = has_byte(word, _QUOTES) | has_byte(word, _BACKSLASHES)
            if (other | has_byte(word, _NEWLINES) | (word & _HIGH_BITS)) == 0:
                i += 8
                continue
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
            valid &= length != 0
            i += max(1, length)
    return i, escaped, valid


@inlined
def _field_of(data, begin, end, code, names, bounds, codes):  # type: ignore[no-untyped-def]
    """Index of the field with the name ``data[begin:end]``; -1 if the name is unknown."""
    for field in range(len(codes)):
        length = bounds[field + 1] - bounds[field]
        if codes[field] == code and length == end - begin:
            same = True
            for k in range(length):
                same &= byte_at(data, begin + k) == byte_at(names, bounds[field] + k)
            if same:
                return field
    return -1


@kernel(void(reads(uint8), reads(int32), writes(uint64)))
def _hash_names(names, bounds, codes):  # type: ignore[no-untyped-def]
    for field in range(len(codes)):
        codes[field] = hashed(names, bounds[field], bounds[field + 1], HASH_START)


@kernel(
    pair(int64)(
        reads(uint8), reads(uint8), reads(int32), reads(uint64), writes(uint64), writes(int64),
        writes(int64), writes(int64), writes(int32), writes(boolean), writes(int32), writes(int32),
    )
)  # fmt: skip
def _find_lines(  # type: ignore[no-untyped-def]
    data, names, bounds, codes, keys, firsts,
    starts, ends, numbers, suspicious, value_starts, value_ends,
):  # fmt: skip
    """Find lines and values; return the number of nonblank lines and the number of all lines.

    A line is suspicious unless its braces and quotes form one object. Keys are compared by hash:
    equal keys, escaped keys, too many keys or levels, and strings that are not UTF-8 also make a
    line suspicious.

    The value of a field extends from the colon to the comma or brace that ends it, without
    surrounding white space. Values are stored line by line, the fields of a line together. ``keys``
    and ``firsts`` are working memory.
    """
    size = len(data)
    fields = len(codes)
    count = 0
    number = 0
    i = 0
    while i < size:
        if byte_at(data, i) == _NEWLINE:  # some files are gigabytes of these
            number += 1
            i += 1
            continue
        start = i
        blank = True
        doubt = False
        depth = 0
        objects = 0
        used = 0
        firsts[0] = 0
        lists = 0
        field = -1  # whose value is being read
        for k in range(count * fields, count * fields + fields):
            value_starts[k] = -1
            value_ends[k] = -1
        while i < size and byte_at(data, i) != _NEWLINE:
            c = byte_at(data, i)
            i += 1
            if c != _SPACE and c != _TAB and c != _RETURN:
                blank = False
            if c == _QUOTE:
                begin = i
                i, escaped, valid = _string_end(data, i, size)
                doubt |= not valid
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
                    code = hashed(data, begin, end, HASH_START)
                    for k in range(firsts[depth], used):
                        doubt |= keys[k] == code
                    doubt |= escaped
                    if used < _MOST_KEYS:
                        keys[used] = code
                        used += 1
                    else:
                        doubt = True
                    if depth == 1 and lists == 0:
                        field = _field_of(data, begin, end, code, names, bounds, codes)
                        if field >= 0:
                            value_starts[count * fields + field] = after + 1
            elif c == _OPEN_LIST:
                lists += 1
            elif c == _CLOSE_LIST:
                lists -= 1
            elif c == _COMMA:
                if depth == 1 and lists == 0 and field >= 0:
                    value_ends[count * fields + field] = i - 1
                    field = -1
            elif c == _OPEN:
                objects += depth == 0
                if depth < _DEEPEST:
                    depth += 1
                    firsts[depth] = used
                else:
                    doubt = True
            elif c == _CLOSE:
                if depth == 1 and field >= 0:
                    value_ends[count * fields + field] = i - 1
                    field = -1
                if depth > 0:
                    used = firsts[depth]
                    depth -= 1
                else:
                    doubt = True
        if not blank:
            starts[count] = start
            ends[count] = i
            numbers[count] = number
            for k in range(count * fields, count * fields + fields):
                begin, end = value_starts[k], value_ends[k]
                while begin < end and byte_at(data, begin) <= _SPACE:
                    begin += 1
                while begin < end and byte_at(data, end - 1) <= _SPACE:
                    end -= 1
                doubt |= value_starts[k] >= 0 and begin >= end  # a key without a value
                value_starts[k] = begin
                value_ends[k] = end
            suspicious[count] = doubt or depth != 0 or lists != 0 or objects != 1
            count += 1
        number += 1
        i += 1
    return count, number


def find_lines(block: bytes, text_field: str = "text") -> Lines:
    """Find the nonblank lines of a JSONL block and the values of their fields.

    ``text_field`` is the name of the field with the text.

    >>> find_lines(b'{"text": "a", "text": "b"}\\n\\n').suspicious
    array([ True])
    """
    data = np.frombuffer(block, np.uint8)
    names, bounds, codes = _names_of(text_field)
    fields = len(codes)
    room = np.count_nonzero(data == _NEWLINE) + 1
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    numbers, suspicious = np.empty(room, np.int32), np.empty(room, np.bool_)
    value_starts, value_ends = np.empty((2, room * fields), np.int32)
    kept, total = _find_lines(
        data, names, bounds, codes,
        np.empty(_MOST_KEYS, np.uint64), np.empty(_DEEPEST + 1, np.int64),
        starts, ends, numbers, suspicious, value_starts, value_ends,
    )  # fmt: skip
    return Lines(
        starts=starts[:kept],
        ends=ends[:kept],
        numbers=numbers[:kept],
        suspicious=suspicious[:kept],
        value_starts=value_starts.reshape(room, fields)[:kept].T,
        value_ends=value_ends.reshape(room, fields)[:kept].T,
        total=total,
    )


@cache
def _names_of(text_field: str) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint64]]:
    """Return the bytes of the field names, their bounds and their hashes."""
    names = [name.encode() for name in (text_field, *FIELDS[1:])]
    data = np.frombuffer(b"".join(names), np.uint8)
    bounds = np.cumsum([0, *map(len, names)], dtype=np.int32)
    codes = np.empty(len(names), np.uint64)
    _hash_names(data, bounds, codes)
    return data, bounds, codes
