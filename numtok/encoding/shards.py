"""shards: writes Parquet shards with page checksums and row groups of a few MiB.

The SHA-256 digest of each shard is computed while the shard is written.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.errors import StoreError
from numtok.files import Sink
from numtok.store.artifact import Output

ROW_GROUP = 12 << 20  # bytes of columns in a row group

# Columns with few distinct values; for all others, a dictionary only costs time.
_DICTIONARY = ("label", "target_name.list.element")
# Token ids are stored as int32. Split by bytes, the upper bytes are all zero and compress well. In
# doubles with random digits, the bytes with the exponent still do.
_ENCODING = {name: "BYTE_STREAM_SPLIT" for name in ("tokens.list.element", "numbers.list.element")}


def separate_file(folder: Path, what: str, unit: int, ending: str) -> str:
    """Return the name of a unit's file for data that does not belong to any split, such as
    ``clipped/clipped-00000.parquet``, and create its folder.

    The file is in a separate folder, so that the folder of the shards can be read as a data set.
    """
    with files.reporting("make", folder / what), suppress(FileExistsError):  # by another unit
        files.system.mkdir(folder / what)
    return f"{what}/{what}-{unit:05d}.{ending}"


class ShardWriter:
    """Writer of one shard. Rows are added as tables, and the row-group boundaries depend only on
    the sizes of these tables."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._sink = Sink(folder / name)
        self._waiting: list[pa.Table] = []
        self._size = 0
        self.rows = 0
        dictionary = [name for name in _DICTIONARY if name.partition(".")[0] in schema.names]
        dictionary += [name for name in schema.names if name.startswith("group_")]
        try:
            self._writer = pq.ParquetWriter(
                self._sink,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=dictionary,
                column_encoding={
                    name: how
                    for name, how in _ENCODING.items()
                    if name.partition(".")[0] in schema.names
                },
                write_page_checksum=True,
                write_statistics=False,
                store_schema=True,
            )
        except BaseException:
            self._sink.abort()
            raise

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table. Raises StoreError if writing to disk fails."""
        self._waiting.append(table)
        self._size += table.nbytes
        self.rows += table.num_rows
        if self._size >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            groups = max(1, round(self._size / ROW_GROUP))
            self._waiting, self._size = [], 0
            self._writer.write_table(table, row_group_size=max(1, -(-table.num_rows // groups)))

    def close(self) -> Output:
        """Finish the shard and flush it to disk. Returns its name, size and digest."""
        self._flush()
        self._writer.close()
        self._sink.close()
        return Output(self._name, self._sink.bytes, self._sink.sha256)

    def abort(self) -> None:
        """Delete the unfinished shard."""
        self._waiting = []
        # pyarrow closes an open writer on garbage collection and then writes into a closed file.
        # The error that stopped the shard may also occur here.
        with suppress(StoreError, pa.ArrowException, OSError):
            self._writer.close()
        self._sink.abort()


class Shards:
    """Writer of all shards of one unit: one shard per split, and one, named by ``apart``, for data
    that does not belong to any split. A shard is created when its first row is written."""

    def __init__(self, folder: Path, unit: int, apart: str) -> None:
        self._folder, self._unit, self._apart = folder, unit, apart
        self._open: dict[str, ShardWriter] = {}

    def write(self, name: str, table: pa.Table) -> None:
        """Add rows to the shard ``<name>-<unit>.parquet``. A shard whose name is ``apart`` is
        written to a separate folder."""
        if not table.num_rows:
            return
        if name not in self._open:
            shard = f"{name}-{self._unit:05d}.parquet"
            if name == self._apart:
                shard = separate_file(self._folder, name, self._unit, "parquet")
            self._open[name] = ShardWriter(self._folder, shard, table.schema)
        self._open[name].write(table)

    def close(self) -> tuple[list[Output], dict[str, int]]:
        """Finish all shards. Returns the files, and the number of rows in each shard, keyed by
        shard name."""
        outputs = [self._open[name].close() for name in sorted(self._open)]
        return outputs, {name: self._open[name].rows for name in sorted(self._open)}

    def __enter__(self) -> "Shards":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            for shard in self._open.values():
                shard.abort()
