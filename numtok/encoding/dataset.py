"""dataset: one split of encoded data, as flat columns with row offsets.

Columns are in memory or memory-mapped. Training and evaluation read shards through this module,
never through the store. Page checksums are verified, and all rows are checked for consistency
before they are used. The module does not import torch.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from numtok import files
from numtok.arrays import Bools, Floats, Int32s, Ints, UInt32s, ranges
from numtok.data.reading.arrow import column as arrow_column
from numtok.encoding.schema import TokenIds, encoded_schema
from numtok.encoding.schemes.base import Channel
from numtok.errors import DataError
from numtok.numerals.policy import NUMERAL
from numtok.row import CLUSTER, FLOOR, GROUP
from numtok.seeds import seed_of
from numtok.store.columns import check_nulls, check_schema, damaged, opened

#: Function from indices int64[k] of numbers in a split to their training targets, float32[k] or
#: float64[k]; NaN for numbers without a target.
Values = Callable[[Ints], Channel]

_NO_ANSWER = arrow_column(np.array([-1], np.int32))[0]


class Answer(NamedTuple):
    """Tokens and numbers of a row's answer."""

    tokens: UInt32s
    number_start: Int32s  # [k] token index within the answer
    number_length: Int32s  # [k]
    numbers: Ints  # [k] indices of the numbers within the split


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedSplit:
    """One split of encoded data: ``n`` rows with ``t`` tokens and ``m`` numbers in total.

    ``token_rows`` and ``number_rows`` are offsets, int64[n + 1]: the tokens of row r are
    ``tokens[token_rows[r]:token_rows[r + 1]]``.
    """

    ids: "pa.Array[Any]"  # [n] strings
    tokens: NDArray[np.uint16] | UInt32s  # [t]
    token_rows: Ints
    number_rows: Ints
    numbers: Floats  # [m], raw
    number_start: Int32s  # [m], token index within the row
    number_length: Int32s  # [m]
    channel: Channel | None  # [m]
    targets: Ints  # [targets], number index in the whole split, in order of rows
    target_row: Ints  # [targets]
    target_name: "pa.Array[Any]"  # [targets] strings
    target_literal: "pa.Array[Any]"  # [targets] strings
    answer_start: Int32s  # [n] token index within the row, -1 if none
    labels: "pa.Array[Any]"  # [n] strings, null if none
    groups: "dict[str, pa.Array[Any]]"  # [n] strings, by name without the prefix
    #: [targets], by name: baseline predictions of the targets, NaN if missing
    floors: dict[str, Floats] = field(default_factory=dict)
    clusters: "pa.Array[Any] | None" = None  # [n] strings, null if none; None if no row has one

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Ints:
        """Number of tokens in each row, int64[n]."""
        return np.diff(self.token_rows)

    @property
    def longest(self) -> int:
        """Number of tokens in the longest row."""
        return int(self.lengths.max(initial=0))

    def first_token(self, numbers: Ints) -> Ints:
        """Return the index in ``tokens`` of the first token of each given number, int64[k].

        numbers
            int64[k], indices of numbers within the split.
        """
        rows = np.searchsorted(self.number_rows, numbers, side="right") - 1
        return np.asarray(self.token_rows[rows] + self.number_start[numbers], np.int64)

    @property
    def in_answer(self) -> Bools:
        """True for each number that is part of the answer of its row, bool[numbers]."""
        start = np.repeat(self.answer_start, np.diff(self.number_rows))
        return (start >= 0) & (self.number_start >= start)

    def answer(self, row: int) -> Answer:
        """Return the answer of a row. The row must have an ``answer_start``."""
        start, (first, end) = int(self.answer_start[row]), self.token_rows[row : row + 2].tolist()
        numbers = np.arange(*self.number_rows[row : row + 2].tolist())
        numbers = numbers[self.number_start[numbers] >= start]
        return Answer(
            self.tokens[first + start : end].astype(np.uint32),
            (self.number_start[numbers] - start).astype(np.int32),
            self.number_length[numbers],
            numbers,
        )

    def class_of(self, classes: Sequence[str]) -> Ints:
        """Return the index of each row's label in ``classes``, int64[n]; -1 if the row has no label
        or its label is not in ``classes``."""
        return class_codes(self.labels, classes)

    def drawn(self, rows: int | None) -> Ints:
        """Return the indices of a random sample of at most ``rows`` rows, int64[k] in ascending
        order. If ``rows`` is None, all rows are selected.

        Rows are drawn by hashing their ids, so every encoding of the same data yields the same
        sample. Clusters are never split. The sample contains at least one cluster, even if that
        cluster has more than ``rows`` rows.
        """
        if rows is None or rows >= len(self):
            return np.arange(len(self))
        units = self.ids if self.clusters is None else pc.coalesce(self.clusters, self.ids)
        keys = np.array([seed_of("sample", unit) for unit in units.to_pylist()], np.int64)
        order = np.argsort(keys, kind="stable")
        if self.clusters is not None:
            ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(self))
            whole = int(np.searchsorted(ends, rows, side="right"))
            rows = int(ends[max(0, whole - 1)])
        return np.sort(order[:rows])

    def sample(self, rows: int | None) -> "EncodedSplit":
        """Return a split that contains only the rows selected by :meth:`drawn`."""
        return self.take(self.drawn(rows))

    def take(self, rows: Ints) -> "EncodedSplit":
        """Return a split that contains only the rows at the given indices, int64[k] in ascending
        order."""
        if len(rows) == len(self):
            return self
        counts = np.diff(self.number_rows)[rows]
        tokens = ranges(self.token_rows[rows], self.lengths[rows])
        numbers = ranges(self.number_rows[rows], counts)
        targets = np.flatnonzero(np.isin(self.target_row, rows))
        return EncodedSplit(
            ids=self.ids.take(rows),
            tokens=self.tokens[tokens],
            token_rows=_offsets([self.lengths[rows]]),
            number_rows=_offsets([counts]),
            numbers=self.numbers[numbers],
            number_start=self.number_start[numbers],
            number_length=self.number_length[numbers],
            channel=None if self.channel is None else self.channel[numbers],
            targets=np.searchsorted(numbers, self.targets[targets]),
            target_row=np.searchsorted(rows, self.target_row[targets]),
            target_name=self.target_name.take(targets),
            target_literal=self.target_literal.take(targets),
            answer_start=self.answer_start[rows],
            labels=self.labels.take(rows),
            groups={name: column.take(rows) for name, column in self.groups.items()},
            floors={name: values[targets] for name, values in self.floors.items()},
            clusters=None if self.clusters is None else self.clusters.take(rows),
        )

    @classmethod
    def read(
        cls, shards: Sequence[Path], ids: TokenIds, spill: Path | None = None
    ) -> "EncodedSplit":
        """Read all rows of a split from its shards, in order.

        ids
            Token ids of the codec that the shards were encoded with (``Codec.ids``).
        spill
            Folder for memory-mapped files of tokens and numbers, if the split does not fit into
            memory. The folder must exist as long as the result is used. If None, everything is kept
            in memory.

        Raises StoreError if a file is damaged or the disk is full, and DataError if the split has
        no rows.
        """
        flat, counts, rest = _columns(shards, ids, spill)
        rows = {name: _offsets(of) for name, of in counts.items()}
        if len(rows["tokens"]) == 1:
            where = ", ".join(map(str, shards[:1])) or "no shard"
            raise DataError(f"the split has no rows ({where}). List the splits: numtok show")
        whole = {name: pa.concat_arrays(parts) for name, parts in rest.items()}
        target_row = np.repeat(np.arange(len(whole["id"])), np.diff(rows["target_index"]))
        return cls(
            ids=whole["id"],
            tokens=flat["tokens"].whole(),
            token_rows=rows["tokens"],
            number_rows=rows["numbers"],
            numbers=flat["numbers"].whole(),
            number_start=flat["number_start"].whole(),
            number_length=flat["number_length"].whole(),
            channel=flat["channel"].whole() if flat["channel"].begun else None,
            targets=rows["numbers"][target_row] + _numbers(whole["target_index"]),
            target_row=target_row,
            target_name=whole["target_name"],
            target_literal=whole["target_literal"],
            answer_start=_numbers(whole["answer_start"].fill_null(_NO_ANSWER)),
            labels=whole["label"],
            groups={
                name.removeprefix(GROUP): column
                for name, column in whole.items()
                if name.startswith(GROUP)
            },
            floors={
                name.removeprefix(FLOOR): _numbers(column)
                for name, column in whole.items()
                if name.startswith(FLOOR)
            },
            clusters=whole.get(CLUSTER),
        )


def _columns(
    shards: Sequence[Path], ids: TokenIds, spill: Path | None
) -> "tuple[dict[str, _Flat], dict[str, list[Ints]], dict[str, list[pa.Array[Any]]]]":
    """Read the columns of shards: the long ones as flat arrays, the number of items per row of each
    list, and the chunks of all other columns."""
    flat = {name: _Flat(spill, name) for name in _FLAT}
    counts: dict[str, list[Ints]] = {name: [] for name in _COUNTED}
    rest: dict[str, list[pa.Array[Any]]] = {}
    with ExitStack() as stack:
        for array in flat.values():
            stack.callback(array.close)
        for columns in checked_groups(shards, ids):
            for name, values in columns.items():
                if pa.types.is_list(values.type):
                    if name in counts:
                        lengths = np.diff(_numbers(values.offsets))
                        counts[name].append(lengths.astype(np.int64))
                    values = values.flatten()
                if name in flat:
                    flat[name].add(_numbers(values))
                else:
                    rest.setdefault(name, []).append(values)
    return flat, counts, rest


def class_codes(labels: "pa.Array[Any] | pa.ChunkedArray", classes: Sequence[str]) -> Ints:
    """Return the index of each label in ``classes``, int64[n]; -1 for null and other labels."""
    indices = pc.index_in(labels, value_set=pa.array(classes, pa.string()))
    return np.asarray(indices.fill_null(-1), np.int64)


def clustered(own: Ints, clusters: "pa.Array[Any] | None") -> Ints:
    """Return the sampling unit of each of n items as an integer, int64[n].

    Items with the same cluster share a unit. An item without a cluster (null) keeps its ``own``
    unit, int64[n].

    >>> clustered(np.array([0, 0, 1, 2]), pa.array(["a", "a", None, "a"]))
    array([0, 0, 2, 0])
    """
    if clusters is None:
        return own
    coded = clusters.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    return np.where(codes < 0, own + len(coded.dictionary), codes)


_FLAT = ("tokens", "numbers", "number_start", "number_length", "channel")
_COUNTED = ("tokens", "numbers", "target_index")
_UNUSED = ("text", "number_text")
# Lists as long as the numbers.
_OF_NUMBERS = ("number_start", "number_length", "number_text", "channel")
_MAY_LACK = ("answer_start", "label", CLUSTER)  # may be null


@contextmanager
def opened_shard(path: Path, ids: TokenIds) -> Iterator[pq.ParquetFile]:
    """Return a context manager that opens a shard as a Parquet file.

    Raises StoreError unless the shard has the columns of
    :func:`numtok.encoding.schema.encoded_schema`.
    """
    with opened(path) as file:
        check_schema(path, file.schema_arrow, encoded_schema(ids), _kind_of_more)
        yield file


def read_group(path: Path, file: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
    """Read the named columns of one row group of an open shard. ``path`` is used in error messages.

    Raises StoreError if a required value is missing or a text is not valid UTF-8.
    """
    table: pa.Table = file.read_row_group(group, columns=list(names))
    check_nulls(path, table, lambda name: name in _MAY_LACK or name.startswith(GROUP))
    for column in table.columns:
        column.validate(full=True)
    return table


def read_column(shards: Sequence[Path], ids: TokenIds, name: str) -> Generator[pa.ChunkedArray]:
    """Yield one column of the given shards, one row group at a time."""
    for path in shards:
        with opened_shard(path, ids) as file:
            for group in range(file.metadata.num_row_groups):
                yield read_group(path, file, group, [name]).column(0)


def bytes_of(shards: Sequence[Path], ids: TokenIds) -> int:
    """Return the approximate amount of memory, in bytes, needed for the tokens and numbers in the
    given shards."""
    size = 0
    for path in shards:
        with opened_shard(path, ids) as file:
            for group in range(file.metadata.num_row_groups):
                facts = file.metadata.row_group(group)
                for k in range(facts.num_columns):
                    name = facts.column(k).path_in_schema.partition(".")[0]
                    if name in _FLAT:
                        width = file.schema_arrow.field(name).type.value_type.bit_width // 8
                        size += width * facts.column(k).num_values
    return size


class _Flat:
    """Growing array, in memory or in a file. The file is memory-mapped when it is complete."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None else folder / name
        self._arrays: list[NDArray[Any]] = []
        self._fd: int | None = None

    @property
    def begun(self) -> bool:
        """True if any array was added, even an empty one."""
        return bool(self._arrays)

    def add(self, values: NDArray[Any]) -> None:
        """Append values."""
        if self._path is not None and len(values):
            with files.reporting("write", self._path):
                if self._fd is None:
                    self._fd = files.system.open_write(self._path)
                files.write_all(self._fd, values.view(np.uint8).data)
            values = values[:0]  # keeps the dtype
        self._arrays.append(values)

    def whole(self) -> NDArray[Any]:
        """Return all values."""
        if self._path is not None and self._fd is not None:
            return np.memmap(self._path, self._arrays[0].dtype, "r")
        return self._arrays[0] if len(self._arrays) == 1 else np.concatenate(self._arrays)

    def close(self) -> None:
        """Close the file without deleting it."""
        if self._fd is not None:
            files.system.close(self._fd)


def _offsets(counts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()


def _kind_of_more(name: str) -> pa.DataType | None:
    """Return the type of an optional column, or None if no optional column has this name."""
    if name.startswith(FLOOR):
        return pa.list_(pa.float64())
    return pa.string() if name.startswith(GROUP) or name == CLUSTER else None


def checked_groups(
    shards: Sequence[Path], ids: TokenIds, unused: Sequence[str] = _UNUSED
) -> "Iterator[dict[str, pa.Array[Any]]]":
    """Yield the checked columns of each row group of shards, without unused columns."""
    first: list[str] | None = None
    for path in shards:
        with opened_shard(path, ids) as file:
            names = [name for name in file.schema_arrow.names if name not in unused]
            if names != (first := first or names):
                raise damaged(path, f"its columns differ from those of {shards[0].name}")
            for group in range(file.metadata.num_row_groups):
                table = read_group(path, file, group, names)
                columns = {name: _column(table, name) for name in names}
                _check_rows(path, columns, ids)
                yield columns


def _check_rows(path: Path, columns: "dict[str, pa.Array[Any]]", ids: TokenIds) -> None:
    """Raise StoreError unless the lists of each row are consistent with each other."""
    bounds = {
        name: _numbers(values.offsets).astype(np.int64)
        for name, values in columns.items()
        if pa.types.is_list(values.type)
    }
    for name in bounds.keys() - {"tokens"}:
        to = "numbers" if name in _OF_NUMBERS else "target_index"
        if name != "numbers" and not np.array_equal(bounds[name], bounds[to]):
            raise damaged(path, f"the lengths of {name!r} and {to!r} differ in a row")

    def flat(name: str) -> NDArray[Any]:
        values: NDArray[Any] = _numbers(columns[name].flatten())
        return values

    first, end = bounds["tokens"][:-1], bounds["tokens"][1:]  # of each row
    counts = np.diff(bounds["numbers"])
    starts = np.repeat(first, counts) + flat("number_start")
    ends = starts + flat("number_length")
    if not (
        (flat("number_start") >= 0).all()
        and (flat("number_length") > 0).all()
        and (ends <= np.repeat(end, counts)).all()
        and (starts[1:] >= ends[:-1]).all()
    ):
        raise damaged(path, "a number lies outside the tokens of its row")
    tokens = flat("tokens")
    edges = np.zeros(len(tokens) + 1, np.int8)
    edges[starts] += 1
    edges[ends] -= 1
    is_text = edges[:-1].cumsum(dtype=np.int8) == 0
    if len(tokens) and not (
        tokens.min() >= ids.number_first
        and tokens.max() < ids.size
        and (
            ids.number_first == ids.text_first  # numbers are in the tokens of text
            or np.array_equal(is_text, tokens >= ids.text_first)
        )
    ):
        raise damaged(path, "a token is not in the vocabulary, or of the wrong kind here")
    if "channel" in columns and not np.isfinite(flat("channel")).all():
        raise damaged(path, "a channel value is not finite")
    _check_targets(path, columns, counts)
    is_text[starts] = True  # an answer may also begin with a number
    _check_answers(path, columns["answer_start"], bounds["tokens"], may_begin=is_text)


def _check_answers(
    path: Path, answers: "pa.Array[Any]", token_rows: Ints, *, may_begin: Bools
) -> None:
    """Raise StoreError unless each answer begins in its row, at a token for which ``may_begin`` [t]
    is True: a token of text, or the first of a number."""
    rows = np.flatnonzero(_numbers(answers.is_valid().cast(pa.uint8())))
    first, lengths = token_rows[rows], np.diff(token_rows)[rows]
    at = _numbers(answers.drop_null())
    if not ((at >= 0) & (at <= lengths)).all():
        raise damaged(path, "an answer begins outside its row")
    if not may_begin[(first + at)[at < lengths]].all():
        raise damaged(path, "an answer begins within a number")


def _check_targets(path: Path, columns: "dict[str, pa.Array[Any]]", counts: Ints) -> None:
    """Raise StoreError unless each target is a number of its row. ``counts`` [n] is the number of
    numbers in each row."""
    lists = columns["target_index"]
    targets = _numbers(lists.flatten())
    numbers_of = np.repeat(counts, np.diff(_numbers(lists.offsets)))
    if not ((targets >= 0) & (targets < numbers_of)).all():
        raise damaged(path, "a target is not a number of its row")
    numerals = pc.match_substring_regex(columns["target_literal"].flatten(), NUMERAL)
    if not pc.all(numerals, min_count=0).as_py():
        raise damaged(path, "the literal of a target is not a number")


def _numbers(values: "pa.Array[Any]") -> NDArray[Any]:
    """Return numbers without nulls as a view. ``to_numpy`` imports pandas if it is installed."""
    view: NDArray[Any] = np.from_dlpack(values)
    return view


def _column(table: pa.Table, name: str) -> "pa.Array[Any]":
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
