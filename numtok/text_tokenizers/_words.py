"""Whole words by look-up, bytes for the rest: one compiled pass over all pieces.

A word is a run of ASCII letters, digits, underscores and non-ASCII characters,
with the one space before it if there is one; what lies between words (``], [``)
is one word too. A word outside the vocabulary becomes its bytes, so any text
comes back byte for byte. As a Hugging Face tokenizer this is a byte-level BPE
that has no merges and looks whole words up first.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

from numtok.kernels import byte_at, inlined, kernel, reads, writes
from numtok.text_tokenizers._bytelevel import BYTE_NAMES, byte_level_json, to_alphabet
from numtok.text_tokenizers.base import Fitted, Pieces, Tokens

#: The same split as `_word_end`, in the dialect of Hugging Face's regular expressions.
_LETTER = r"(?:[0-9A-Za-z_]|[^\x00-\x7F])"
WORD_PATTERN = rf" ?{_LETTER}+|(?:(?! {_LETTER})(?!{_LETTER})[\x00-\x7F])+"

_IN_WORD = np.zeros(256, np.bool_)
_IN_WORD[list(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")] = True
_IN_WORD[0x80:] = True
_SPACE = ord(" ")
_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SHIFT = np.uint64(32)


@inlined
def _word_end(data, i, end):  # type: ignore[no-untyped-def]
    """The end of the word that begins at ``i`` < ``end``."""
    j = i + 1
    if _IN_WORD[byte_at(data, i)] or (
        byte_at(data, i) == _SPACE and j < end and _IN_WORD[byte_at(data, j)]
    ):
        while j < end and _IN_WORD[byte_at(data, j)]:
            j += 1
        return j
    while j < end and not _IN_WORD[byte_at(data, j)]:
        if byte_at(data, j) == _SPACE and j + 1 < end and _IN_WORD[byte_at(data, j + 1)]:
            break
        j += 1
    return j


@inlined
def _find(data, start, end, slots, words, bounds):  # type: ignore[no-untyped-def]
    """The slot of the word ``data[start:end]``: its own, or the empty one where it would go.

    Open addressing; a slot holds 1 + the index of a word, word k being
    ``words[bounds[k]:bounds[k + 1]]``, or 0.
    """
    code = _FNV_START
    for i in range(start, end):
        code = (code ^ np.uint64(byte_at(data, i))) * _FNV_PRIME
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


@kernel(int64(reads(uint8), reads(int32), writes(int32)))
def _index(words, bounds, slots):  # type: ignore[no-untyped-def]
    """Enter every word into the empty table ``slots``; returns the number of distinct words."""
    distinct = 0
    for k in range(len(bounds) - 1):
        slot = _find(words, bounds[k], bounds[k + 1], slots, words, bounds)
        distinct += slots[slot] == 0
        slots[slot] = k + 1
    return distinct


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), reads(uint8), reads(int32),
        writes(uint32), writes(int32),
    )
)  # fmt: skip
def _encode(data, pieces, slots, words, bounds, ids, id_bounds):  # type: ignore[no-untyped-def]
    count = 0
    id_bounds[0] = 0
    for piece in range(len(pieces) - 1):
        i, end = np.int64(pieces[piece]), np.int64(pieces[piece + 1])
        while i < end:
            j = _word_end(data, i, end)
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
    int64(
        reads(uint8), reads(int32), int64, writes(int32), writes(uint8), writes(int32),
        writes(int64), writes(uint64),
    )
)  # fmt: skip
def _count(data, pieces, longest, slots, words, bounds, counts, tally):  # type: ignore[no-untyped-def]
    """Count the words of at most ``longest`` bytes; ``tally`` is (next piece, distinct words).

    Stops and returns 0 when the table is half full or ``words`` is short of room, to be called
    again with larger ones; returns 1 when all pieces are done.
    """
    distinct = np.int64(tally[1])
    for piece in range(np.int64(tally[0]), len(pieces) - 1):
        i, end = np.int64(pieces[piece]), np.int64(pieces[piece + 1])
        while i < end:
            j = _word_end(data, i, end)
            if j - i <= longest:
                slot = _find(data, i, j, slots, words, bounds)
                k = slots[slot] - 1
                if k < 0:
                    if 2 * (distinct + 1) >= len(slots):
                        return 0
                    k = distinct
                    place = bounds[k]
                    for b in range(j - i):
                        words[place + b] = byte_at(data, i + b)
                    bounds[k + 1] = place + j - i
                    distinct += 1
                    slots[slot] = distinct
                counts[k] += 1
            i = j
        tally[0] = piece + 1
        tally[1] = distinct
    return 1


def count_words(sample: Pieces, longest: int) -> dict[bytes, int]:
    """How often each word of at most ``longest`` bytes occurs in the sample."""
    size = 1 << 16
    while True:
        # Every attempt starts anew: a table too small is rare, and small.
        slots, counts = np.zeros(size, np.int32), np.zeros(size // 2, np.int64)
        words, bounds = np.empty(size // 2 * longest, np.uint8), np.zeros(size // 2 + 1, np.int32)
        tally = np.zeros(2, np.uint64)
        if _count(*sample, longest, slots, words, bounds, counts, tally):
            break
        size *= 4
    raw, ends = words.tobytes(), bounds.tolist()
    return {raw[ends[k] : ends[k + 1]]: int(counts[k]) for k in range(int(tally[1]))}


class WordTable(Fitted):
    """The 256 bytes, then words; the vocabulary of ``words`` and (without words) ``bytes``."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        encoded = [word.encode() for word in self.words]
        self._bounds = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(word) for word in encoded], out=self._bounds[1:])
        self._data = np.frombuffer(b"".join(encoded), np.uint8)
        self._slots = np.zeros(1 << (4 * len(encoded) + 1).bit_length(), np.int32)
        if _index(self._data, self._bounds, self._slots) != len(encoded) or b"" in encoded:
            raise ValueError("the words of a vocabulary are distinct and not empty")
        self._bytes = [bytes([byte]) for byte in range(256)] + encoded

    def vocabulary(self) -> list[str]:
        return [*BYTE_NAMES, *self.words]

    def encode(self, pieces: Pieces) -> Tokens:
        ids = np.empty(len(pieces.data), np.uint32)  # a token is at least a byte
        bounds = np.empty(len(pieces.bounds), np.int32)
        count = _encode(*pieces, self._slots, self._data, self._bounds, ids, bounds)
        return Tokens(ids[:count], bounds)

    def decode(self, ids: NDArray[np.uint32]) -> bytes:
        return b"".join([self._bytes[token] for token in ids.tolist()])

    def state(self) -> dict[str, Any]:
        return {"words": list(self.words)}

    def huggingface(self) -> dict[str, Any]:
        vocabulary = [to_alphabet(token) for token in self._bytes]
        return byte_level_json(vocabulary, WORD_PATTERN)
