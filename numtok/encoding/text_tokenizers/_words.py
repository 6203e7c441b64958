"""Word tokenizer with byte fallback: one compiled pass over all pieces.

A word is a run of ASCII letters, digits, underscores and non-ASCII characters, including one
preceding space. The text between two words (``], [``) is also one word. Optionally, a quoted key
with its colon, ``'key': ``, is one word. A word outside the vocabulary is split into its bytes, so
any text is restored byte for byte. As a Hugging Face tokenizer, this is a byte-level BPE without
merges that looks up whole words first.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numtok.arrays import Int32s, UInt32s
from numtok.encoding.byte_alphabet import BYTE_NAMES, to_alphabet
from numtok.encoding.segments import Segments
from numtok.encoding.text_tokenizers._bytelevel import byte_level_json
from numtok.encoding.text_tokenizers.base import (
    FittedTokenizer,
    NumberTokens,
    TokenRuns,
    Woven,
)
from numtok.encoding.texts import Texts
from numtok.stored_json import convert

_LONGEST = 64  # bytes; longer words get no entry

#: The same split as `_word_end` of `_word_kernels`, as a Hugging Face regular expression.
_LETTER = r"(?:[0-9A-Za-z_]|[^\x00-\x7F])"
WORD_PATTERN = rf" ?{_LETTER}+|(?:(?! {_LETTER})(?!{_LETTER})[\x00-\x7F])+"
_INSIDE = rf"(?:{_LETTER}|[ ./-])+"
_KEY = rf"""(?:'{_INSIDE}'|"{_INSIDE}"):(?: (?!{_LETTER}))?"""
KEY_PATTERN = rf" ?{_LETTER}+|{_KEY}|(?:(?! {_LETTER})(?!{_LETTER})(?!{_KEY})[\x00-\x7F])+"


def frequent_words(sample: Texts, size: int, keys: bool) -> list[str]:
    """Return the ``size`` most frequent words of the sample that occur at least twice. Words with
    equal counts are sorted by their bytes."""
    counts = _count_words(sample, keys)
    # Single bytes are in the vocabulary already.
    worth = [(-n, word) for word, n in counts.items() if n > 1 and len(word) > 1]
    return [word.decode() for _, word in sorted(worth)[:size]]


def _count_words(sample: Texts, keys: bool) -> dict[bytes, int]:
    """Count each word of at most ``_LONGEST`` bytes in the sample."""
    from numtok.encoding.text_tokenizers._word_kernels import count

    size = 1 << 16
    while True:
        # Every attempt starts from scratch: a table that is too small is rare, and cheap.
        slots, counts = np.zeros(size, np.int32), np.zeros(size // 2, np.int64)
        words, bounds = np.empty(size // 2 * _LONGEST, np.uint8), np.zeros(size // 2 + 1, np.int32)
        tally = np.zeros(2, np.uint64)
        if count(*sample, keys, _LONGEST, slots, words, bounds, counts, tally):
            break
        size *= 4
    raw, ends = words.tobytes(), bounds.tolist()
    return {raw[ends[k] : ends[k + 1]]: int(counts[k]) for k in range(int(tally[1]))}


def words_of(state: dict[str, Any]) -> list[str]:
    """Return the words in the result of :meth:`WordTable.state`. Raises ValueError if the state is
    invalid."""
    return convert(state.get("words"), list[str])


class WordTable(FittedTokenizer):
    """A tokenizer whose vocabulary consists of the 256 bytes and of words. It is used by ``words``,
    ``structure`` and, without words, by ``bytes``. With ``keys``, a quoted key is one word."""

    def __init__(self, words: Sequence[str], keys: bool = False) -> None:
        self.words = tuple(words)
        self._keys = keys
        encoded = [word.encode() for word in self.words]
        self._bounds = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(word) for word in encoded], out=self._bounds[1:])
        self._data = np.frombuffer(b"".join(encoded), np.uint8)
        if len(set(encoded)) != len(encoded) or b"" in encoded:
            raise ValueError("the words of a vocabulary must be distinct and not empty")
        self._bytes = [bytes([byte]) for byte in range(256)] + encoded

    def vocabulary(self) -> list[str]:
        return [*BYTE_NAMES, *self.words]

    @cached_property
    def _slots(self) -> Int32s:
        """Hash table of the words."""
        from numtok.encoding.text_tokenizers._word_kernels import index

        slots = np.zeros(1 << (4 * len(self.words) + 1).bit_length(), np.int32)
        index(self._data, self._bounds, slots)
        return slots

    def encode(self, pieces: Texts) -> TokenRuns:
        from numtok.encoding.text_tokenizers._word_kernels import encode

        ids = np.empty(len(pieces.data), np.uint32)  # a token is at least a byte
        bounds = np.empty(len(pieces.rows), np.int32)
        count = encode(*pieces, self._keys, self._slots, self._data, self._bounds, ids, bounds)
        return TokenRuns(ids[:count], bounds)

    def weave(
        self, segments: Segments, numbers: NumberTokens, first: int, dtype: type[np.unsignedinteger]
    ) -> Woven:
        from numtok.encoding.interleave import NUMBER_BYTES
        from numtok.encoding.text_tokenizers._word_kernels import KNOWN, weave

        count, room = len(segments.counts), segments.room()
        text = np.empty(room + len(NUMBER_BYTES) * len(numbers.lengths), np.uint8)
        tokens = np.empty(room + len(numbers.ids), dtype)  # a text token is at least a byte
        text_bounds, token_bounds = np.empty((2, count + 1), np.int32)
        places = np.empty(len(numbers.lengths), np.int32)
        size, used = weave(
            *segments.columns, self._keys, self._slots, self._data, self._bounds, *numbers, first,
            np.zeros(KNOWN, np.uint64), np.empty(KNOWN, np.int32),
            text, text_bounds, tokens, token_bounds, places,
        )  # fmt: skip
        return Woven(text[:size], text_bounds, tokens[:used], token_bounds, places)

    def decode(self, ids: UInt32s) -> bytes:
        return b"".join([self._bytes[token] for token in ids.tolist()])

    def state(self) -> dict[str, Any]:
        return {"words": list(self.words)}

    def huggingface(self) -> dict[str, Any]:
        vocabulary = [to_alphabet(token) for token in self._bytes]
        return byte_level_json(vocabulary, KEY_PATTERN if self._keys else WORD_PATTERN)
