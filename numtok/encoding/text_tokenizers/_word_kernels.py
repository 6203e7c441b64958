"""Compiled passes for ``_words``. They are in a separate file, so that decoding does not need
numba."""

import numpy as np

from numtok.encoding.interleave import NUMBER_BYTES, at_keyword
from numtok.kernel_types import (
    boolean,
    int32,
    int64,
    pair,
    reads,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
    writes,
)
from numtok.kernels import HASH_START, byte_at, copy_bytes, hashed, inlined, kernel, word_at

_IN_WORD = np.zeros(256, np.bool_)
_IN_WORD[list(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")] = True
_IN_WORD[0x80:] = True
_IN_KEY = _IN_WORD.copy()
_IN_KEY[list(b" ./-")] = True
_IS_QUOTE = np.zeros(256, np.bool_)
_IS_QUOTE[list(b"\"'")] = True
_SPACE, _COLON, _OPEN, _BACKSLASH = ord(" "), ord(":"), ord("["), ord("\\")
_SHIFT = np.uint64(32)
KNOWN, _KNOWN_SHIFT = 1 << 8, np.uint64(56)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _key_end(data, i, end):  # type: ignore[no-untyped-def]
    """Return the end of the quoted key that begins at ``i`` < ``end``; 0 if none."""
    if not _IS_QUOTE[byte_at(data, i)]:
        return 0
    j = i + 1
    while j < end and _IN_KEY[byte_at(data, j)]:
        j += 1
    if j == i + 1 or j + 1 >= end:
        return 0
    if byte_at(data, j) != byte_at(data, i) or byte_at(data, j + 1) != _COLON:
        return 0
    j += 2
    if j == end or byte_at(data, j) != _SPACE:
        return j
    return j if j + 1 < end and _IN_WORD[byte_at(data, j + 1)] else j + 1


@inlined
def _word_end(data, i, end, keys):  # type: ignore[no-untyped-def]
    """Return the end of the word that begins at ``i`` < ``end``. With ``keys``, a quoted key is a
    word."""
    j = i + 1
    if _IN_WORD[byte_at(data, i)] or (
        byte_at(data, i) == _SPACE and j < end and _IN_WORD[byte_at(data, j)]
    ):
        while j < end and _IN_WORD[byte_at(data, j)]:
            j += 1
        return j
    key_end = _key_end(data, i, end) if keys else 0
    if key_end > 0:
        return key_end
    while j < end and not _IN_WORD[byte_at(data, j)]:
        if byte_at(data, j) == _SPACE and j + 1 < end and _IN_WORD[byte_at(data, j + 1)]:
            break
        if keys and _key_end(data, j, end) > 0:
            break
        j += 1
    return j


@inlined
def _find(data, start, end, slots, words, bounds):  # type: ignore[no-untyped-def]
    """Return the slot of the word ``data[start:end]``, or the empty slot where it would go.

    Open addressing: a slot holds 0 or 1 + the index of a word. Word k is
    ``words[bounds[k]:bounds[k + 1]]``.
    """
    code = hashed(data, start, end, HASH_START)
    mask = np.uint64(len(slots) - 1)
    slot = (code ^ (code >> _SHIFT)) & mask
    while slots[slot] != 0:
        k = slots[slot] - 1
        length = bounds[k + 1] - bounds[k]
        if length == end - start:
            same = True
            for i in range(length):
                if words[bounds[k] + i] != byte_at(data, start + i):
                    same = False
                    break
            if same:
                return slot
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel(void(reads(uint8), reads(int32), writes(int32)))
def index(words, bounds, slots):  # type: ignore[no-untyped-def]
    """Insert all words, which must be distinct, into the empty table ``slots``."""
    for k in range(len(bounds) - 1):
        slots[_find(words, bounds[k], bounds[k + 1], slots, words, bounds)] = k + 1


@kernel(
    int64(
        reads(uint8), reads(int32), boolean, reads(int32), reads(uint8), reads(int32),
        writes(uint32), writes(int32),
    )
)  # fmt: skip
def encode(data, pieces, keys, slots, words, bounds, ids, id_bounds):  # type: ignore[no-untyped-def]
    """Look up the words of all pieces. Returns the number of tokens."""
    count = 0
    id_bounds[0] = 0
    for piece in range(len(pieces) - 1):
        i, end = np.int64(pieces[piece]), np.int64(pieces[piece + 1])
        while i < end:
            j = _word_end(data, i, end, keys)
            k = slots[_find(data, i, j, slots, words, bounds)]
            if k != 0:
                ids[count] = 255 + k  # the bytes come first
                count += 1
            else:
                for b in range(i, j):
                    ids[count] = byte_at(data, b)
                    count += 1
            i = j
        id_bounds[piece + 1] = count
    return count


@kernel(
    [
        pair(int64)(
            reads(uint8), reads(int32), reads(int32), reads(int32), reads(int32), reads(int32),
            boolean, reads(int32), reads(uint8), reads(int32),
            reads(uint32), reads(int32), int64, int64, writes(uint64), writes(int32),
            writes(uint8), writes(int32), writes(token), writes(int32), writes(int32),
        )
        for token in (uint16, uint32)
    ]
)  # fmt: skip
def weave(  # type: ignore[no-untyped-def]
    data, bounds, limits, counts, starts, ends,
    keys, slots, words, word_bounds,
    number_ids, number_lengths, number_first, text_first, known, known_words,
    text, text_bounds, tokens, token_bounds, places,
):  # fmt: skip
    """Copy and escape each piece of text, look up its words, and merge their tokens with those of
    the numbers, in a single pass. Returns the number of bytes and of tokens written.

    Pieces of one word and up to seven bytes, such as a comma and a space, come again and again:
    ``known``, which begins with zeros, and ``known_words`` hold :data:`KNOWN` of them.
    """
    size = np.int64(0)
    count = 0
    number = 0
    taken = 0
    text_bounds[0] = 0
    token_bounds[0] = 0
    for segment in range(len(counts)):
        first = count
        begin = np.int64(bounds[segment])
        for k in range(counts[segment] + 1):
            last = k == counts[segment]
            end = np.int64(bounds[segment + 1]) if last else np.int64(starts[number])
            length = end - begin
            short = 0 < length < 8 and begin + 8 <= len(data) and size + 8 <= len(text)
            key = np.uint64(0)
            if short:
                key = (word_at(data, begin) << np.uint64(64 - 8 * length)) | np.uint64(length)
            slot = (key * _FACTOR) >> _KNOWN_SHIFT
            if short and known[slot] == key:
                copy_bytes(text, size, data, begin, 8)
                size += length
                tokens[count] = 255 + known_words[slot] + text_first
                count += 1
            else:
                i = size
                before = count
                word = np.int32(0)
                for offset in range(begin, end):
                    text[size] = byte_at(data, offset)
                    size += 1
                    if byte_at(data, offset) == _OPEN and at_keyword(
                        data, offset + 1, limits[segment]
                    ):
                        text[size] = _BACKSLASH
                        size += 1
                plain = size - i == length
                while i < size:
                    j = _word_end(text, i, size, keys)
                    word = slots[_find(text, i, j, slots, words, word_bounds)]
                    if word != 0:
                        tokens[count] = 255 + word + text_first  # the bytes come first
                        count += 1
                    else:
                        for b in range(i, j):
                            tokens[count] = byte_at(text, b) + text_first
                            count += 1
                    i = j
                if short and plain and word != 0 and count == before + 1:
                    known[slot] = key
                    known_words[slot] = word
            if not last:
                copy_bytes(text, size, NUMBER_BYTES, 0, len(NUMBER_BYTES))
                size += len(NUMBER_BYTES)
                places[number] = count - first
                for _ in range(number_lengths[number]):
                    tokens[count] = number_ids[taken] + number_first
                    count += 1
                    taken += 1
                begin = np.int64(ends[number])
                number += 1
        text_bounds[segment + 1] = size
        token_bounds[segment + 1] = count
    return size, count


@kernel(
    int64(
        reads(uint8), reads(int32), boolean, int64, writes(int32), writes(uint8),
        writes(int32), writes(int64), writes(uint64),
    )
)  # fmt: skip
def count(  # type: ignore[no-untyped-def]
    data, pieces, keys, longest, slots, words, bounds, counts, tally
):
    """Count the words of at most ``longest`` bytes. ``tally`` receives the index of the next piece
    and the number of distinct words.

    Returns 1 if all pieces are done, and 0 if the table is half full or ``words`` has no space
    left. In this case, call the function again with larger arrays.
    """
    distinct = np.int64(tally[1])
    for piece in range(np.int64(tally[0]), len(pieces) - 1):
        i, end = np.int64(pieces[piece]), np.int64(pieces[piece + 1])
        while i < end:
            j = _word_end(data, i, end, keys)
            if j - i <= longest:
                slot = _find(data, i, j, slots, words, bounds)
                k = slots[slot] - 1
                if k < 0:
                    if 2 * (distinct + 1) >= len(slots):
                        return 0
                    k = distinct
                    start = bounds[k]
                    for b in range(j - i):
                        words[start + b] = byte_at(data, i + b)
                    bounds[k + 1] = start + j - i
                    distinct += 1
                    slots[slot] = distinct
                counts[k] += 1
            i = j
        tally[0] = piece + 1
        tally[1] = distinct
    return 1
