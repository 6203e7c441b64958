"""decoded_shards: decodes encoded shards, and finds rows that do not say what they should.

Checksums find files that changed after they were written. This check finds shards that were written
wrong: tokens that are not those of the row's text, or numbers that are not those of its tokens.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from numtok.arrays import Bools, Floats
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import checked_groups
from numtok.encoding.schemes.base import Failure
from numtok.encoding.splits import splits
from numtok.encoding.stored_codec import read_codec
from numtok.encoding.texts import unescape
from numtok.errors import NumtokError, StoreError
from numtok.numerals.column import Numerals
from numtok.store.artifact import Artifact

_MARK = "[NUM]"  # stands for a number in the stored text
_SLACK = 1e-9  # relative; numbers of more than 17 digits are stored as the nearest float64


def differences(artifact: Artifact) -> Iterator[str]:
    """Yield the first row that differs in each shard of encoded data, with file and row, and shards
    that cannot be read."""
    try:
        codec = read_codec(artifact)
        shards = [shard for several in splits(artifact).values() for shard in several]
    except NumtokError as error:
        yield str(error)
        return
    for shard in shards:
        try:
            found = first_difference(codec, shard)
        except StoreError as error:
            yield str(error)
            continue
        if found is not None:
            yield f"{shard.name!r} {found}"


def first_difference(codec: Codec, shard: Path) -> str | None:
    """Return the first row of a shard whose tokens do not match its text and numbers, and why; None
    if all rows match. The first row is row 0.

    Numbers are encoded again and compared with the stored tokens. If the scheme restores numbers as
    written, their tokens are decoded and compared with the values. The text between numbers is
    decoded and compared.

    Raises StoreError if the shard is damaged.
    """
    rows = 0
    for columns in checked_groups([shard], codec.ids, unused=()):
        group = _Group(codec, columns)
        if (found := min(group.differences(), default=None)) is not None:
            return f"row {rows + found[0]}: {found[1]}"
        rows += len(columns["id"])
    return None


class _Group:
    """Checked columns of one row group."""

    def __init__(self, codec: Codec, columns: "dict[str, pa.Array[Any]]") -> None:
        self._codec, self._columns = codec, columns
        self._token_rows = columns["tokens"].offsets.to_numpy().astype(np.int64)
        self._number_rows = columns["numbers"].offsets.to_numpy().astype(np.int64)
        self._token_rows -= self._token_rows[0]
        self._number_rows -= self._number_rows[0]
        self._tokens = _flat(columns["tokens"]).astype(np.uint32)
        self._starts = _flat(columns["number_start"])
        self._lengths = _flat(columns["number_length"])
        self._numbers: Floats = _flat(columns["numbers"])
        self._channel = _flat(columns["channel"]) if "channel" in columns else None

    def differences(self) -> Iterator[tuple[int, str]]:
        """Yield the first row with a difference of each kind, and the difference."""
        row_of = np.repeat(np.arange(len(self._number_rows) - 1), np.diff(self._number_rows))
        for wrong, what in self._of_numbers(row_of):
            if wrong.any():
                number = int(np.argmax(wrong))
                within = number - int(self._number_rows[row_of[number]])
                yield int(row_of[number]), f"number {within} is {self._numbers[number]!r}, {what}"
        texts = self._columns["text"].to_pylist()
        for row, text in enumerate(texts):
            if (decoded := self._text(row)) != unescape(text):
                yield row, f"the tokens of its text spell {_excerpt(decoded, unescape(text))}"
                return

    def _of_numbers(self, row_of: Any) -> Iterator[tuple[Bools, str]]:
        codec = self._codec
        at = self._token_rows[row_of] + self._starts
        inside = np.zeros(len(self._tokens) + 1, np.int8)
        np.add.at(inside, at, 1)
        np.add.at(inside, at + self._lengths, -1)
        tokens = self._tokens[inside[:-1].cumsum(dtype=np.int8) > 0] - np.uint32(codec.number_first)
        answers = self._columns["answer_start"].fill_null(np.iinfo(np.int32).max).to_numpy()
        in_answer = self._starts >= answers[row_of]
        decoded = codec.decode_numbers(tokens, self._lengths, self._channel, in_answer)
        if decoded.written is not None:
            values = Numerals.of_literals([*map(decoded.literal, range(len(at)))]).values
            yield values != self._numbers, "but its tokens spell another number"
            return
        numerals = Numerals.of_literals([*map(repr, self._numbers.tolist())]).of_texts(in_answer)
        again = codec.encode_numbers(numerals)
        best = codec.decode_numbers(again.tokens, again.lengths, again.channel, in_answer)
        with np.errstate(invalid="ignore"):  # infinite numbers
            away, least = (np.abs(each.values - self._numbers) for each in (decoded, best))
            further = away > least * (1 + _SLACK) + _SLACK * np.abs(self._numbers)
        same = (decoded.failures == best.failures) & ~further
        # A literal that float64 cannot hold is infinite or 0 in the column, but not in its tokens.
        over, under = np.isinf(self._numbers), self._numbers == 0
        same |= over & (decoded.failures == Failure.OVERFLOW)
        same |= under & (decoded.failures == Failure.UNDERFLOW)
        yield ~same, "but its tokens are those of another number"

    def _text(self, row: int) -> str:
        """Return the text that the tokens of a row spell, with a mark for each number."""
        first, last = self._number_rows[row : row + 2].tolist()
        begin, end = self._token_rows[row : row + 2].tolist()
        marks = [_MARK] * (last - first)
        numbers = self._starts[first:last], self._lengths[first:last]
        return self._codec.joined(self._tokens[begin:end], *numbers, marks, errors="replace")


def _flat(column: "pa.Array[Any]") -> Any:
    return column.flatten().to_numpy(zero_copy_only=False)


def _excerpt(decoded: str, text: str) -> str:
    """Return both texts around the first character that differs."""
    pairs = enumerate(zip(decoded, text, strict=False))
    at = next((k for k, (one, other) in pairs if one != other), min(len(decoded), len(text)))
    near = slice(max(0, at - 10), at + 20)
    return f"{decoded[near]!r} instead of {text[near]!r}"
