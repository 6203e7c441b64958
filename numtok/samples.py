"""One split of encoded data in memory: flat columns and the offsets of rows.

Training and evaluation read shards through this, never through the store. Page
checksums are verified. Nothing here knows torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from numtok.errors import DataError, StoreError
from numtok.records import GROUP


@dataclass(frozen=True, eq=False)
class Samples:
    """``n`` rows with ``t`` tokens and ``m`` numbers in all; ``*_rows`` are offsets [n + 1]."""

    ids: "pa.Array[Any]"  # [n] strings
    tokens: NDArray[np.uint16] | NDArray[np.uint32]  # [t]
    token_rows: NDArray[np.int64]
    number_rows: NDArray[np.int64]
    numbers: NDArray[np.float64]  # [m], raw
    number_start: NDArray[np.int32]  # [m], token index within the row
    number_length: NDArray[np.int32]  # [m]
    channel: NDArray[np.float32] | None  # [m]
    targets: NDArray[np.int64]  # [targets], number index in the whole split, in order of rows
    target_row: NDArray[np.int64]  # [targets]
    target_name: "pa.Array[Any]"  # [targets] strings
    target_literal: "pa.Array[Any]"  # [targets] strings
    answer_start: NDArray[np.int32]  # [n] token index within the row, -1 if none
    groups: "dict[str, pa.Array[Any]]"  # [n] strings, by name without the prefix

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row."""
        return np.diff(self.token_rows)

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return int(self.lengths.max(initial=0))

    def head(self, rows: int | None) -> "Samples":
        """The first ``rows`` rows; all of them for None or more than there are."""
        if rows is None or rows >= len(self):
            return self
        tokens, numbers = int(self.token_rows[rows]), int(self.number_rows[rows])
        targets = int(np.searchsorted(self.target_row, rows))
        return Samples(
            ids=self.ids[:rows],
            tokens=self.tokens[:tokens],
            token_rows=self.token_rows[: rows + 1],
            number_rows=self.number_rows[: rows + 1],
            numbers=self.numbers[:numbers],
            number_start=self.number_start[:numbers],
            number_length=self.number_length[:numbers],
            channel=None if self.channel is None else self.channel[:numbers],
            targets=self.targets[:targets],
            target_row=self.target_row[:targets],
            target_name=self.target_name[:targets],
            target_literal=self.target_literal[:targets],
            answer_start=self.answer_start[:rows],
            groups={name: column[:rows] for name, column in self.groups.items()},
        )

    @classmethod
    def read(cls, shards: Sequence[Path]) -> "Samples":
        """All rows of a split's shards, in order.

        Raises StoreError for a damaged file, DataError where the split has no rows.
        """
        try:
            tables = [_read(path) for path in shards]
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"a shard cannot be read: {error}; `numtok verify` says which files are damaged"
            ) from error
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        if table is None or not table.num_rows:
            raise DataError("the split has no rows; `numtok show` lists the splits of the data")
        token_rows, tokens = _flat(table, "tokens")
        number_rows, numbers = _flat(table, "numbers")
        target_rows, target_index = _flat(table, "target_index")
        target_row = np.repeat(np.arange(table.num_rows), np.diff(target_rows))
        return cls(
            ids=_column(table, "id"),
            tokens=tokens.to_numpy(),
            token_rows=token_rows,
            number_rows=number_rows,
            numbers=numbers.to_numpy(),
            number_start=_flat(table, "number_start")[1].to_numpy(),
            number_length=_flat(table, "number_length")[1].to_numpy(),
            channel=_flat(table, "channel")[1].to_numpy()
            if "channel" in table.column_names
            else None,
            targets=number_rows[target_row] + target_index.to_numpy(),
            target_row=target_row,
            target_name=_flat(table, "target_name")[1],
            target_literal=_flat(table, "target_literal")[1],
            answer_start=_column(table, "answer_start").fill_null(-1).to_numpy(),
            groups={
                name.removeprefix(GROUP): _column(table, name)
                for name in table.column_names
                if name.startswith(GROUP)
            },
        )


def _read(path: Path) -> "pa.Table":
    """A shard without what is not used here: the text."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        names = [name for name in file.schema_arrow.names if name not in ("text", "label")]
        return file.read(columns=names)


def _column(table: "pa.Table", name: str) -> "pa.Array[Any]":
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _flat(table: "pa.Table", name: str) -> "tuple[NDArray[np.int64], pa.Array[Any]]":
    """A list column as offsets of rows and flat values."""
    column = table.column(name)
    chunks = column.chunks  # more than one where the values pass 2^31
    rows = np.concatenate(
        [np.zeros(1, np.int64)]
        + [np.diff(chunk.offsets.to_numpy()).astype(np.int64) for chunk in chunks]
    ).cumsum()
    values = [chunk.flatten() for chunk in chunks]
    return rows, values[0] if len(values) == 1 else pa.concat_arrays(values)
