"""splits: reads the splits of an encoded artifact, for training and evaluation."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok import files
from numtok.arrays import Int32s, Ints, UInt8s
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.channel import ChannelValues, normalised_values
from numtok.encoding.codec import LARGEST, Codec
from numtok.encoding.dataset import (
    EncodedSplit,
    Values,
    bytes_of,
    opened_shard,
    read_column,
    read_group,
)
from numtok.encoding.schema import SCHEME_FILE, TokenIds
from numtok.encoding.schemes.base import Channel, ChannelScheme
from numtok.encoding.texts import Texts, unescape
from numtok.errors import StoreError, unknown
from numtok.machine import memory
from numtok.numerals.column import Literals
from numtok.numerals.find import Spans
from numtok.store.artifact import ENCODED, TABLE, Artifact, Find
from numtok.store.columns import damaged

_SHARD = re.compile(r"([a-z0-9][a-z0-9_-]*)-\d{5,}\.parquet")
_NUMBER, _WORD = "[NUM]", re.compile(r"\w+")  # in the column ``text``
_MEMORY = 0.25  # fraction of the machine's memory that one split may use


def splits(artifact: Artifact) -> dict[str, list[Path]]:
    """Return the paths of the shards of each split, in order."""
    shards: dict[str, list[Path]] = {}
    for output in artifact.files():
        match = _SHARD.fullmatch(output.path)
        if match:
            shards.setdefault(match[1], []).append(artifact.path / output.path)
    return shards


def check_split(artifact: Artifact, split: str) -> None:
    """Raise UsageError if an artifact has no split with this name."""
    existing = splits(artifact)
    if split not in existing:
        create = "Create splits: numtok encode --split validation=0.1,test=0.1"
        hint = create if list(existing) == [TRAIN] else ""
        raise unknown(f"split of {artifact.ref}", split, existing, hint)


def read_split(
    artifact: Artifact, split: str, spill: Callable[[], Path] | None = None
) -> EncodedSplit:
    """Read all rows of a split. Raises UsageError if no split has this name.

    spill
        Function that returns a folder for memory-mapped files. It is called only if the split is
        too large for memory.
    """
    check_split(artifact, split)
    shards, ids = splits(artifact)[split], _ids(artifact)
    too_large = spill is not None and bytes_of(shards, ids) > _MEMORY * memory()
    return EncodedSplit.read(shards, ids, spill() if spill and too_large else None)


def longest_of(artifact: Artifact, split: str) -> int:
    """Return the number of tokens in the longest row of a split. The split must exist."""
    every = _column(artifact, split, "tokens")
    lengths = (pc.max(pc.list_value_length(tokens)).as_py() or 0 for tokens in every)
    return max(lengths, default=0)


def _ids(artifact: Artifact) -> TokenIds:
    """Return the ids that the shards of an encoded artifact are checked against."""
    path = artifact.path / SCHEME_FILE
    return _ids_in(files.read_bytes(path, LARGEST), path)


@lru_cache(2)
def _ids_in(content: bytes, path: Path) -> TokenIds:
    return Codec.from_json(content, path).ids


def read_learnt(
    model: Artifact, encoded: Artifact | None, find: Find, split: str = TRAIN
) -> EncodedSplit | None:
    """Read a split (by default, the train split) of the data that a model was trained on.

    The training data may differ from ``encoded``. Returns None if it is no longer in the store.
    """
    data = learnt_data(model, encoded, find)
    return read_split(data, split) if data is not None else None


def learnt_data(model: Artifact, data: Artifact | None, find: Find) -> Artifact | None:
    """Return the table or encoded data that a model was trained on. This is ``data`` itself, or
    other data that ``find`` looks up in the store. Returns None if it is no longer in the store."""
    parent = model.made_from(ENCODED, TABLE)
    if data is not None and parent.digest == data.manifest.content:
        return data
    name, _, version = parent.where.partition("@")
    return find(parent.kind, name, version)


def read_labels(artifact: Artifact, split: str) -> pa.ChunkedArray:
    """Read the label of each row in a split, in order; null for rows without a label."""
    labels = _column(artifact, split, "label")
    return pa.chunked_array([chunk for some in labels for chunk in some.chunks], pa.string())


def read_words(artifact: Artifact, split: str, rows: Ints) -> Iterator[tuple[str, ...]]:
    """Yield the lower-case words and the numbers of each given row, in order:
    ``("is", "3.5", "kg")``.

    Numbers are written in Python's notation, regardless of the scheme.

    rows
        int64[k], ascending indices of rows.
    """
    for pieces, numbers in read_pieces(artifact, split, rows):
        yield tuple(_words(pieces, numbers))


def read_pieces(
    artifact: Artifact, split: str, rows: Ints
) -> Iterator[tuple[list[str], list[float]]]:
    """Yield the pieces of text around the numbers of each given row, and the values of the numbers.
    A row with k numbers has k + 1 pieces.

    rows
        int64[k], ascending indices of rows.
    """
    for shard, table in _texts(artifact, split, rows):
        for text, numbers in zip(*(column.to_pylist() for column in table.columns), strict=True):
            pieces = text.split(_NUMBER)
            if len(pieces) != len(numbers) + 1:
                raise _other_numbers(shard)
            yield [unescape(piece) for piece in pieces], numbers


def read_texts(artifact: Artifact, split: str, rows: Ints) -> Iterator[tuple[Texts, Spans]]:
    """Yield the stored texts of the given rows, one row group at a time, with the spans of the
    marks that replace numbers.

    The marks are written ``_NUM_`` instead of ``[NUM]``, because brackets would look like a list.

    rows
        int64[k], ascending indices of rows.
    """
    for shard, table in _texts(artifact, split, rows):
        texts, counts = (
            Texts.of(table.column("text")),
            pc.list_value_length(table.column("numbers")),
        )
        starts = _occurrences(texts.data, _NUMBER.encode())
        row_of = np.searchsorted(texts.rows, starts, side="right") - 1
        within = (row_of >= 0) & (row_of < len(table))
        starts, row_of = starts[within], row_of[within]
        within = starts + len(_NUMBER) <= texts.rows[row_of + 1]  # not across two rows
        starts, row_of = starts[within], row_of[within]
        mark_counts = np.bincount(row_of, minlength=len(table)).astype(np.int32)
        if not np.array_equal(mark_counts, counts.to_numpy()):
            raise _other_numbers(shard)
        ends, data = starts + np.int32(len(_NUMBER)), texts.data.copy()
        data[starts] = data[ends - 1] = ord("_")
        yield (
            texts._replace(data=data),
            Spans(starts, ends, mark_counts, Literals(data, starts, ends)),
        )


def _occurrences(data: UInt8s, word: bytes) -> Int32s:
    """Return the offsets of non-overlapping occurrences of a word in data, int32[k].

    >>> _occurrences(np.frombuffer(b"[[NUM] [NU [NUM]", np.uint8), b"[NUM]").tolist()
    [1, 11]
    """
    starts = np.flatnonzero(data[: max(0, len(data) - len(word) + 1)] == word[0])
    for index, byte in enumerate(word[1:], 1):
        starts = starts[data[starts + index] == byte]
    return starts.astype(np.int32)


def _texts(artifact: Artifact, split: str, rows: Ints) -> Iterator[tuple[Path, pa.Table]]:
    """Yield texts and numbers of the given rows (int64[k], ascending), one row group at a time."""
    begin, ids = 0, _ids(artifact)
    for shard in splits(artifact)[split]:
        with opened_shard(shard, ids) as file:
            for group in range(file.metadata.num_row_groups):
                end = begin + file.metadata.row_group(group).num_rows
                first, last = np.searchsorted(rows, [begin, end])
                if first < last:
                    table = read_group(shard, file, group, ["text", "numbers"])
                    yield shard, table.take(rows[first:last] - begin)
                begin = end


def _other_numbers(shard: Path) -> StoreError:
    return damaged(shard, "a text does not match the numbers of its row")


def read_ids(artifact: Artifact, split: str) -> Iterator[str]:
    """Yield the id of each row in a split, in order."""
    for ids in _column(artifact, split, "id"):
        yield from ids.to_pylist()


def _words(pieces: list[str], numbers: list[float]) -> Iterator[str]:
    for piece, number in zip_longest(pieces, numbers):
        yield from _WORD.findall(piece.lower())
        if number is not None:
            yield repr(number)


def has_targets(artifact: Artifact) -> bool:
    """Return whether every row in the first row group of the train split has a target."""
    with closing(_column(artifact, TRAIN, "target_index")) as groups:
        first = next(groups, None)
    return first is not None and bool(pc.min(pc.list_value_length(first)).as_py())


def _column(artifact: Artifact, split: str, name: str) -> Generator[pa.ChunkedArray]:
    """Yield one column of a split, one row group at a time."""
    return read_column(splits(artifact)[split], _ids(artifact), name)


def learnt_values(samples: EncodedSplit, codec: Codec) -> Values:
    """Return a function that maps indices of numbers to training targets for a value head.

    The target of a number is its normalized value in float64 or, if the scheme splits numbers
    between token and channel, its channel value. A target is NaN if float32 cannot represent it, or
    if the token already determines the number, as xVal's ``+OVERFLOW`` does (its channel value is
    1).
    """
    channel = samples.channel
    if channel is None:
        return lambda numbers: normalised_values(samples.numbers[numbers], codec.normalizer)
    assert isinstance(codec.scheme, ChannelScheme)
    values = ChannelValues(codec.scheme, codec.normalizer)

    def from_channel(numbers: Ints) -> Channel:
        first = samples.tokens[samples.first_token(numbers)].astype(np.int64) - codec.number_first
        in_answer = samples.in_answer[numbers]
        return values(first, channel[numbers], samples.numbers[numbers], in_answer)

    return from_channel
