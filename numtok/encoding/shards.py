"""Parquet shards: row groups of a few MiB, page checksums, sha256 while writing."""

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

# Columns that repeat few values; the others would only pay for building a dictionary.
_DICTIONARY = ("label", "target_name.list.element")
# Token ids are stored as int32: split by bytes, the upper ones are all zero and cost nothing.
_ENCODING = {"tokens.list.element": "BYTE_STREAM_SPLIT"}


def beside(folder: Path, what: str, unit: int, ending: str) -> str:
    """The name of a unit's file of ``what`` is no row of a split, in a folder of its own, so that
    the shards alone are a data set: ``clipped/clipped-00000.parquet``. Makes that folder."""
    with files.reporting("make", folder / what), suppress(FileExistsError):  # by another unit
        files.system.mkdir(folder / what)
    return f"{what}/{what}-{unit:05d}.{ending}"


class ShardWriter:
    """One shard ``name`` of a folder, written as tables come; a row group's bounds depend on the
    tables alone."""

    def __init__(self, folder: Path, name: str, schema: "pa.Schema") -> None:
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

    def write(self, table: "pa.Table") -> None:
        """Add rows; StoreError if the disk fails."""
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
        """Finish the shard and make it durable."""
        self._flush()
        self._writer.close()
        self._sink.close()
        return Output(self._name, self._sink.bytes, self._sink.sha256)

    def abort(self) -> None:
        """Leave no shard."""
        self._waiting = []
        # pyarrow closes a writer that is left open when it is collected, and then writes into a
        # closed file; what stopped the shard may stop this as well.
        with suppress(StoreError, pa.ArrowException, OSError):
            self._writer.close()
        self._sink.abort()


class Shards:
    """The shards of one unit, by name (a split, or what lies ``apart``), each opened when its first
    row comes."""

    def __init__(self, folder: Path, unit: int, apart: str) -> None:
        self._folder, self._unit, self._apart = folder, unit, apart
        self._open: dict[str, ShardWriter] = {}

    def write(self, name: str, table: "pa.Table") -> None:
        """Add rows to the shard ``<name>-<unit>.parquet``; that of what lies apart is in a folder
        of this name."""
        if not table.num_rows:
            return
        if name not in self._open:
            shard = f"{name}-{self._unit:05d}.parquet"
            if name == self._apart:
                shard = beside(self._folder, name, self._unit, "parquet")
            self._open[name] = ShardWriter(self._folder, shard, table.schema)
        self._open[name].write(table)

    def close(self) -> tuple[list[Output], dict[str, int]]:
        """Finish all: the files, and the rows of each."""
        outputs = [self._open[name].close() for name in sorted(self._open)]
        return outputs, {name: self._open[name].rows for name in sorted(self._open)}

    def __enter__(self) -> "Shards":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            for shard in self._open.values():
                shard.abort()
