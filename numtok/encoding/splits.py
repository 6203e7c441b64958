"""The splits of an encoded artifact, for the stages that learn from it and evaluate on it."""

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
from numtok.encoding.texts import Spans, Texts, unescape
from numtok.errors import StoreError, UsageError, unknown
from numtok.machine import memory
from numtok.store.artifact import ENCODED, Artifact, Find
from numtok.store.columns import damaged

_SHARD = re.compile(r"([a-z0-9][a-z0-9_-]*)-\d{5,}\.parquet")
_NUMBER, _WORD = "[NUM]", re.compile(r"\w+")  # of the column ``text``
_MEMORY = 0.25  # the share of the machine's that one split may take


def read_codec(artifact: Artifact) -> Codec:
    """The codec of an encoded or model artifact."""
    with artifact.naming_plugins():
        return Codec.read(artifact.path / SCHEME_FILE)


def same_codec(first: Artifact, second: Artifact) -> bool:
    """Whether two encoded or model artifacts write texts in one way."""
    one, other = (files.read_bytes(each.path / SCHEME_FILE, LARGEST) for each in (first, second))
    return one == other or read_codec(first).digest == read_codec(second).digest


def check_codec(model: Artifact, encoded: Artifact) -> None:
    """Raises UsageError for data that are not encoded as the model's were."""
    if not same_codec(model, encoded):
        raise UsageError(
            f"{encoded.ref} is encoded in another way than {model.ref} was trained on; "
            f"`numtok encode --reuse-encoding {model.ref} INPUT` encodes data for it"
        )


def splits(artifact: Artifact) -> dict[str, list[Path]]:
    """The shards of each split, in order."""
    found: dict[str, list[Path]] = {}
    for output in artifact.files():
        match = _SHARD.fullmatch(output.path)
        if match:
            found.setdefault(match[1], []).append(artifact.path / output.path)
    return found


def check_split(artifact: Artifact, split: str, hint: str = "") -> None:
    """Raises UsageError where there is no split of that name."""
    there = splits(artifact)
    if split not in there:
        if list(there) == [TRAIN]:
            hint = hint or "`numtok encode --split validation=0.1,test=0.1` makes others"
        raise unknown(f"split of {artifact.ref}", split, there, hint)


def read_split(
    artifact: Artifact, split: str, hint: str = "", spill: Callable[[], Path] | None = None
) -> EncodedSplit:
    """All rows of a split; UsageError where there is none of that name.

    ``spill`` gives a folder for what is too large for memory, and is asked only then.
    """
    check_split(artifact, split, hint)
    shards, ids = splits(artifact)[split], _ids(artifact)
    too_large = spill is not None and bytes_of(shards, ids) > _MEMORY * memory()
    return EncodedSplit.read(shards, ids, spill() if spill and too_large else None)


def longest_of(artifact: Artifact, split: str) -> int:
    """Number of tokens of the longest row of an existing split."""
    every = _column(artifact, split, "tokens")
    lengths = (pc.max(pc.list_value_length(tokens)).as_py() or 0 for tokens in every)
    return max(lengths, default=0)


def _ids(artifact: Artifact) -> TokenIds:
    """What the shards of an encoded artifact are checked against."""
    path = artifact.path / SCHEME_FILE
    return _ids_in(files.read_bytes(path, LARGEST), path)


@lru_cache(2)
def _ids_in(content: bytes, path: Path) -> TokenIds:
    return Codec.from_json(content, path).ids


def read_learnt(
    model: Artifact, encoded: Artifact, find: Find, split: str = TRAIN
) -> EncodedSplit | None:
    """The rows that a model learnt from, or another split of them, which may be of other data than
    ``encoded``; None where they are no longer in the store."""
    found = learnt_data(model, encoded, find)
    return read_split(found, split) if found is not None else None


def learnt_data(model: Artifact, encoded: Artifact, find: Find) -> Artifact | None:
    """What a model learnt from: ``encoded``, or other data where they are still in the store."""
    parent = model.made_from(ENCODED)
    if parent.digest == encoded.manifest.content:
        return encoded
    name, _, version = parent.where.partition("@")
    return find(ENCODED, name, version)


def read_labels(artifact: Artifact, split: str) -> "pa.ChunkedArray":
    """The labels of all rows of a split, in order; null where a row has none."""
    labels = _column(artifact, split, "label")
    return pa.chunked_array([chunk for some in labels for chunk in some.chunks], pa.string())


def read_words(artifact: Artifact, split: str, rows: Ints) -> Iterator[tuple[str, ...]]:
    """Of some rows (int64[k]), which rise, the words in lower case and the numbers, in order; a
    number as Python writes its value, whatever the scheme: ``("is", "3.5", "kg")``."""
    for pieces, numbers in read_pieces(artifact, split, rows):
        yield tuple(_words(pieces, numbers))


def read_pieces(
    artifact: Artifact, split: str, rows: Ints
) -> Iterator[tuple[list[str], list[float]]]:
    """Of some rows (int64[k]), which rise, the text around its numbers, one piece more than there
    are numbers, and the values of these."""
    for shard, table in _texts(artifact, split, rows):
        for text, numbers in zip(*(one.to_pylist() for one in table.columns), strict=True):
            pieces = text.split(_NUMBER)
            if len(pieces) != len(numbers) + 1:
                raise _other_numbers(shard)
            yield [unescape(piece) for piece in pieces], numbers


def read_texts(artifact: Artifact, split: str, rows: Ints) -> Iterator[tuple[Texts, Spans]]:
    """Of some rows (int64[k]), which rise, the texts as they are kept, and where the marks stand
    that took the place of numbers: ``_NUM_`` here, since a bracket would look like a list. Those of
    a row group come together."""
    for shard, table in _texts(artifact, split, rows):
        texts, counts = (
            Texts.of(table.column("text")),
            pc.list_value_length(table.column("numbers")),
        )
        starts = _occurrences(texts.data, _NUMBER.encode())
        row_of = np.searchsorted(texts.rows, starts, side="right") - 1
        within = (row_of >= 0) & (row_of < len(table))
        starts, row_of = starts[within], row_of[within]
        within = starts + len(_NUMBER) <= texts.rows[row_of + 1]  # not of two rows together
        starts, row_of = starts[within], row_of[within]
        found = np.bincount(row_of, minlength=len(table)).astype(np.int32)
        if not np.array_equal(found, counts.to_numpy()):
            raise _other_numbers(shard)
        ends, data = starts + np.int32(len(_NUMBER)), texts.data.copy()
        data[starts] = data[ends - 1] = ord("_")
        yield texts._replace(data=data), Spans(starts, ends, found)


def _occurrences(data: UInt8s, word: bytes) -> Int32s:
    """int32[k]: where some bytes stand in others, which do not overlap.

    >>> _occurrences(np.frombuffer(b"[[NUM] [NU [NUM]", np.uint8), b"[NUM]").tolist()
    [1, 11]
    """
    starts = np.flatnonzero(data[: max(0, len(data) - len(word) + 1)] == word[0])
    for place, byte in enumerate(word[1:], 1):
        starts = starts[data[starts + place] == byte]
    return starts.astype(np.int32)


def _texts(artifact: Artifact, split: str, rows: Ints) -> "Iterator[tuple[Path, pa.Table]]":
    """Texts and numbers of some rows (int64[k]), which rise, a row group at a time."""
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
    return damaged(shard, "a text has not the numbers of its row")


def read_ids(artifact: Artifact, split: str) -> Iterator[str]:
    """The ids of all rows of a split, in order."""
    for ids in _column(artifact, split, "id"):
        yield from ids.to_pylist()


def _words(pieces: list[str], numbers: list[float]) -> Iterator[str]:
    for piece, number in zip_longest(pieces, numbers):
        yield from _WORD.findall(piece.lower())
        if number is not None:
            yield repr(number)


def has_targets(artifact: Artifact) -> bool:
    """Whether every row at the beginning of the train split (one row group) has a target."""
    with closing(_column(artifact, TRAIN, "target_index")) as groups:
        first = next(groups, None)
    return first is not None and bool(pc.min(pc.list_value_length(first)).as_py())


def _column(artifact: Artifact, split: str, name: str) -> "Generator[pa.ChunkedArray]":
    """One column of a split, a row group at a time."""
    return read_column(splits(artifact)[split], _ids(artifact), name)


def learnt_values(samples: EncodedSplit, codec: Codec) -> Values:
    """Each number as a value head learns it: the channel, or else normalised.

    Where the channel holds the numbers of the text as they are, it is these, in float64.
    NaN where there is none: float32 cannot hold it, or the token says all of it, as xVal's
    ``+OVERFLOW``, whose channel is 1.
    """
    channel = samples.channel
    if channel is None:
        return lambda numbers: normalised_values(samples.numbers[numbers], codec.normalizer)
    assert isinstance(codec.scheme, ChannelScheme)
    values = ChannelValues(codec.scheme, codec.normalizer)

    def beside_token(numbers: Ints) -> Channel:
        first = samples.tokens[samples.first_token(numbers)].astype(np.int64) - codec.number_first
        return values(first, channel[numbers], samples.numbers[numbers])

    return beside_token
