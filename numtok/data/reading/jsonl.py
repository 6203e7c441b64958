"""Read rows from JSONL files, plain or compressed, in blocks of whole lines."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from numtok.data.reading.batches import ReadingOptions, RejectedRow, RowBatch
from numtok.data.reading.checksum import changed
from numtok.data.reading.file_part import FilePart, PartBytes
from numtok.data.reading.first_bytes import MARK, check_utf8
from numtok.data.reading.json_lines import UNREADABLE, BadLine, LineDecoder, read_line, row_decoder
from numtok.data.reading.lines import find_lines
from numtok.data.reading.rows import RowColumns, RowOffsets, problem_in
from numtok.errors import DataError
from numtok.row import Row


class _JsonObject(msgspec.Struct, gc=False):
    """Any JSON object; decoding one checks the syntax of a line."""


_SYNTAX = msgspec.json.Decoder(_JsonObject)


def read_lines(part: FilePart, how: ReadingOptions, size: int) -> Iterator[RowBatch]:
    """Yield the rows of a JSONL file part, about ``size`` bytes at a time.

    Raises DataError if compressed data is damaged, if the text is UTF-16, or if the file changed
    since it was planned.
    """
    decoder = row_decoder(Row, how.text_field)
    packed = part.format != "jsonl"
    with PartBytes(part, part.begin, part.end, how.checked) as raw:
        stream: Any = raw
        if packed:
            stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), part.format)
        row, offset = 0, part.begin
        for block, dropped in _blocks(raw, lambda: stream.read(size), how.max_line):
            raw.check()  # first: a file that is being overwritten has malformed rows
            if not offset:
                check_utf8(block, part.shown)
                offset = len(MARK) if block.startswith(MARK) else 0
                block = block[offset:]
            batch, lines = _decode_block(part, decoder, block, row=row, offset=offset, how=how)
            row += lines
            offset += len(block)
            del block  # the batch holds it until it is released
            if dropped is not None:
                if not dropped.blank:
                    batch.rejected.append(RejectedRow(part, row, _too_long(how.max_line), None))
                row += 1
                offset += dropped.size
            yield batch
        if packed:
            raw.read()  # bytes after the last compressed frame are part of the checksum
        if how.checked and raw.checksum != part.checksum:
            raise changed(part.shown)


@dataclass
class _Dropped:
    """A line that is too long to be kept in memory."""

    size: int = 0
    blank: bool = True

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self.blank = self.blank and not piece.strip(b" \t\r\n")


def _blocks(
    raw: PartBytes, read: Callable[[], bytes], max_line: int
) -> Iterator[tuple[bytes, _Dropped | None]]:
    """Yield blocks of whole lines, each with the long line dropped after it, or None."""
    pieces: list[bytes] = []
    held = 0
    dropped: _Dropped | None = None
    while chunk := _read_chunk(raw, read):
        if dropped is not None:
            end = chunk.find(b"\n") + 1
            dropped.add(chunk[:end] if end else chunk)
            if not end:
                continue
            yield b"", dropped
            dropped, chunk = None, chunk[end:]
        cut = chunk.rfind(b"\n") + 1
        if cut:
            pieces.append(chunk[:cut])
            held, chunk = 0, chunk[cut:]
            yield _taken(pieces), None
        if chunk:
            pieces.append(chunk)
            held += len(chunk)
        if held > max_line:
            dropped = _Dropped()
            for piece in pieces:
                dropped.add(piece)
            held, pieces = 0, []
    if dropped is not None:
        yield b"", dropped
    elif pieces:
        yield _taken(pieces), None


def _taken(pieces: list[bytes]) -> bytes:
    """Join the pieces and clear the list, so that a long line is in memory only once."""
    block = b"".join(pieces)
    pieces.clear()
    return block


def _read_chunk(raw: PartBytes, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError as error:  # how Arrow reports damaged or truncated compressed data
        raw.check()
        raise DataError(
            f"{raw.shown}: decompression failed ({error}); the file is damaged or truncated. "
            "Download or compress it again"
        ) from None


def _decode_block(
    part: FilePart,
    decoder: LineDecoder[Row],
    block: bytes,
    row: int,
    offset: int,
    how: ReadingOptions,
) -> tuple[RowBatch, int]:
    """Return the rows of a block, and its number of lines, including blank ones."""
    lines = find_lines(block, how.text_field)
    starts, ends = lines.starts, lines.ends
    numbers = lines.numbers.astype(np.int64) + row
    too_long = ends - starts > how.max_line
    if not (lines.suspicious | too_long).any() and len(starts):
        # If a line is malformed, which is rare, lines are decoded one by one below.
        with suppress(*UNREADABLE):
            _SYNTAX.decode_lines(block)
            rows = RowColumns.from_values(block, lines, RowOffsets(part.file, offset + starts))
            if rows is not None:
                contents = lambda index: block[starts[index] : ends[index]]  # noqa: E731
                return RowBatch(
                    part=part, numbers=numbers, rows=rows, contents=contents
                ), lines.total

    rejected: list[RejectedRow] = []
    records: list[Row] = []
    kept, doubts = [], lines.suspicious
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        line = None if too_long[index] else block[start:end]
        record = _too_long(how.max_line) if line is None else _read(line, decoder, doubts[index])
        if isinstance(record, str):
            rejected.append(RejectedRow(part, int(numbers[index]), record, line))
        else:
            records.append(record)
            kept.append(index)
    keep = np.array(kept, np.int64)
    rows = RowColumns.from_records(records, RowOffsets(part.file, offset + starts[keep]))
    batch = RowBatch(
        part=part,
        numbers=numbers[keep],
        rows=rows,
        contents=lambda index: block[starts[kept[index]] : ends[kept[index]]],
        rejected=rejected,
    )
    return batch, lines.total


def _read(line: bytes, decoder: LineDecoder[Row], suspicious: bool) -> Row | str:
    """Decode a line; return the row or the reason to reject it."""
    try:
        record = read_line(line, decoder, suspicious=suspicious)
    except BadLine as error:
        return str(error)
    return problem_in(record) or record


def _too_long(max_line: int) -> str:
    return f"the line has more than {max_line:,} bytes. Split the row, or raise --max-line"
