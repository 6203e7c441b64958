"""Inputs of a stage: which files, which units of work, which rows.

A unit is a share of the input's bytes, 64 MiB or so, whose bounds depend on
nothing but those bytes: a long file is cut at line ends, small files share a
unit, a compressed file is one unit. :func:`plan` reads every byte once, for the
digests; :func:`read` reads a unit again as batches of rows and notices if it is
not what was digested.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.artifact import Parent
from numtok.errors import DataError, UsageError
from numtok.records import DATA, SPLIT_NAME, Row, row_type
from numtok.stages._lines import duplicate_key, find_lines, reason_of
from numtok.store import Store

UNIT = 64 << 20  # bytes of input in a unit
BLOCK = 4 << 20  # bytes read and encoded at a time
_STDIN = "standard input"
FORMATS = {".jsonl": "jsonl", ".jsonl.gz": "gzip", ".jsonl.zst": "zstd", ".parquet": "parquet"}


class Source(NamedTuple):
    """One input file, and the split that its place or the command gives all its rows."""

    path: Path
    split: str | None
    shown: str  # as the user named it
    owner: Parent | None = None  # the data artifact that it belongs to


class Part(NamedTuple):
    """Some rows of one file: bytes [begin, end), or row groups of Parquet."""

    file: int  # index among the inputs
    path: Path
    shown: str
    split: str | None
    format: str
    begin: int
    end: int
    first_row: int  # of Parquet: rows before it are in other parts
    crc: int  # zlib.crc32 of the bytes; of Parquet the file's
    size: int  # bytes of input


class Unit(NamedTuple):
    """What one call of a stage's work function does."""

    index: int
    parts: tuple[Part, ...]
    input: str  # digest of what is in it

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(part.size for part in self.parts)


class Rejected(NamedTuple):
    """A row that cannot be used, and why; ``row`` counts the lines of its part."""

    part: Part
    row: int
    reason: str
    content: bytes | None  # None where it was too long to keep

    def error(self) -> DataError:
        """The error that ends a run with ``--on-error fail``."""
        return DataError(f"{place_of(self.part, self.row)}: {self.reason}")

    @property
    def number(self) -> int:
        """The line of the file, from 1; of Parquet the row, from 0."""
        return self.row + _first_number(self.part)


@dataclass
class Batch:
    """Rows of one part, column by column; ``rows`` counts the lines of the part."""

    part: Part
    rows: list[int]
    ids: list[str]
    texts: "pa.Array[Any]"
    fields: list[Row]  # the other fields; ``text`` is not set here
    contents: Callable[[int], bytes]  # the row as it was read, for rejecting it
    rejected: list[Rejected] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, keep: Sequence[int]) -> "Batch":
        """The rows at some indices."""
        contents = self.contents
        return Batch(
            self.part,
            [self.rows[index] for index in keep],
            [self.ids[index] for index in keep],
            self.texts.take(pa.array(keep, pa.int32())),
            [self.fields[index] for index in keep],
            lambda index: contents(keep[index]),
            self.rejected,
        )

    def reject(self, index: int, reason: str) -> Rejected:
        """The row at an index as one that cannot be used."""
        return Rejected(self.part, self.rows[index], reason, self.contents(index))


@dataclass(frozen=True)
class Reading:
    """How inputs are read."""

    text_field: str = "text"
    max_line: int = 256 << 20  # bytes


def place_of(part: Part, row: int) -> str:
    """``data.jsonl, line 17`` or ``data.parquet, row 16``, for a row counted within its part."""
    kind = "row" if part.format == "parquet" else "line"
    return f"{part.shown}, {kind} {row + _first_number(part)}"


@lru_cache
def _first_number(part: Part) -> int:
    """The number of a part's first row; lines are counted only when an error must name one."""
    if part.format == "parquet":
        return part.first_row
    lines = 1
    if part.format == "jsonl" and part.begin:
        with _Bytes(part.path, 0, part.begin) as raw:
            while piece := raw.read(files.PIECE):
                lines += piece.count(b"\n")
    return lines


def find_sources(
    arguments: Sequence[str], store: Store, spool: Callable[[], Path]
) -> tuple[list[Source], str]:
    """The files that a command's inputs stand for, and a name for what is made of them.

    An input is a path, a folder, ``split=PATH``, ``-`` (``spool`` stores standard input and says
    where) or a REF of a data artifact. Raises UsageError for what is none of these.
    """
    sources: list[Source] = []
    name = ""
    for argument in arguments:
        split, path = _split_and_path(argument)
        if path == "-":
            found = [Source(spool(), split, _STDIN)]
            stem = "stdin"
        elif Path(path).exists():
            found = [Source(file, split, str(file)) for file in _files_below(Path(path))]
            stem = Path(path).resolve().name
        else:
            found = _of_artifact(path, split, store)
            stem = found[0].owner.where.partition("@")[0] if found[0].owner else path
        sources += found
        name = name or _as_name(stem)
    if sum(source.shown == _STDIN for source in sources) > 1:
        raise UsageError("standard input (-) can be given once")
    return sources, name


def _split_and_path(argument: str) -> tuple[str | None, str]:
    split, equals, path = argument.partition("=")
    if equals and path and SPLIT_NAME.fullmatch(split) and not Path(argument).exists():
        return split, path
    return None, argument


def _format_of(path: Path) -> str | None:
    for suffix, form in FORMATS.items():
        if path.name.endswith(suffix):
            return form
    return None


def _files_below(path: Path) -> list[Path]:
    if path.is_dir():
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and _format_of(file)
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        if not found:
            raise UsageError(f"{path}: no file in this folder ends in {', '.join(FORMATS)}")
        return found
    if _format_of(path) is None:
        raise UsageError(
            f"{path}: cannot tell what kind of file this is; allowed are {', '.join(FORMATS)}, "
            "a folder of them, - and the REF of a data artifact"
        )
    return [path]


def _of_artifact(ref: str, split: str | None, store: Store) -> list[Source]:
    if _format_of(Path(ref)):
        raise UsageError(f"{ref}: there is no such file; check the path")
    artifact = store.resolve(ref, kinds={DATA})
    owner = artifact.as_parent()
    sources = [
        Source(
            artifact.path / file.path, split or file.path.rpartition("-")[0], file.path, owner
        )
        for file in artifact.files()
        if _format_of(Path(file.path))
    ]
    if not sources:
        raise DataError(f"{artifact.ref} holds no rows (no file ends in {', '.join(FORMATS)})")
    return sources


def _as_name(stem: str) -> str:
    """A file name as an artifact's name: ``My Data.jsonl.gz`` -> ``my-data``."""
    for suffix in FORMATS:
        stem = stem.removesuffix(suffix)
    letters = [c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem.lower()]
    return "".join(letters).lstrip("._-") or "data"


def plan(
    sources: Sequence[Source], progress: Callable[[str, int, int], None]
) -> tuple[list[Unit], list[Parent]]:
    """Read every input once: the units of work, and the parents with their digests.

    Raises DataError for an empty file, StoreError for one that cannot be read.
    """
    units: list[Unit] = []
    parents: list[Parent] = []
    gathered: list[Part] = []
    digests: list[str] = []
    total = sum(source.path.stat().st_size for source in sources)
    done = 0

    def advance(size: int) -> None:
        nonlocal done
        done += size
        progress("reading", done, total)

    def close_unit() -> None:
        if gathered:
            content = [[digests[part.file], part.begin, part.end, part.split] for part in gathered]
            digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()
            units.append(Unit(len(units), tuple(gathered), digest))
            gathered.clear()

    for index, source in enumerate(sources):
        parts, digest, size = _survey(index, source, advance)
        digests.append(digest)
        parent = source.owner or Parent("file", source.shown, digest, size)
        if parent is not (parents[-1] if parents else None):  # once for all files of an artifact
            parents.append(parent)
        for part in parts:
            alone = part.format in ("gzip", "zstd")
            if gathered and (alone or sum(p.size for p in gathered) + part.size > UNIT):
                close_unit()
            gathered.append(part)
            if alone:
                close_unit()
    close_unit()
    return units, parents


def _survey(
    index: int, source: Source, progress: Callable[[int], None]
) -> tuple[list[Part], str, int]:
    """The parts of one file, its sha256 and size, in one pass over its bytes."""
    form = _format_of(source.path) or "jsonl"
    digest = hashlib.sha256()
    bounds: list[tuple[int, int, int, int]] = []  # begin, end, first row, crc
    begin, size, crc = 0, 0, 0
    with files.reporting("read", source.path):
        fd = files.system.open_read(source.path)
        try:
            while piece := files.system.read(fd, files.PIECE):
                digest.update(piece)
                progress(len(piece))
                cut = 0
                if form == "jsonl" and size + len(piece) - begin > UNIT:
                    cut = piece.find(b"\n", max(0, begin + UNIT - size)) + 1
                if cut:
                    crc = zlib.crc32(piece[:cut], crc)
                    bounds.append((begin, size + cut, 0, crc))
                    begin, crc = size + cut, 0
                crc = zlib.crc32(memoryview(piece)[cut:], crc)
                size += len(piece)
        finally:
            files.system.close(fd)
    if not size:
        raise DataError(f"{source.shown} is empty; give a file with at least one row")
    if size > begin:
        bounds.append((begin, size, 0, crc))
    if form == "parquet":
        bounds = _row_groups(source, crc)

    def part(begin: int, end: int, first: int, crc: int, size: int) -> Part:
        return Part(
            index, source.path, source.shown, source.split, form, begin, end, first, crc, size
        )

    if form == "parquet":
        share = size // max(1, len(bounds))
        return [part(*bound, share) for bound in bounds], digest.hexdigest(), size
    return [part(*bound, bound[1] - bound[0]) for bound in bounds], digest.hexdigest(), size


def _row_groups(source: Source, crc: int) -> list[tuple[int, int, int, int]]:
    """Runs of row groups of some 64 MiB uncompressed."""
    with _opened_parquet(source.path, source.shown) as file:
        bounds: list[tuple[int, int, int, int]] = []
        begin, first, row, gathered = 0, 0, 0, 0
        for group in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(group)
            if group > begin and gathered + facts.total_byte_size > UNIT:
                bounds.append((begin, group, first, crc))
                begin, first, gathered = group, row, 0
            gathered += facts.total_byte_size
            row += facts.num_rows
        if not row:
            raise DataError(f"{source.shown} has no rows; give a file with at least one")
        bounds.append((begin, file.metadata.num_row_groups, first, crc))
        return bounds


class _Bytes:
    """Bytes [begin, end) of a file as Python's file protocol, with a running checksum."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        self._path, self._end = path, end
        self._place = begin
        self.crc = 0
        self.closed = False
        with files.reporting("read", path):
            self._fd = files.system.open_read(path)

    def read(self, size: int = -1) -> bytes:
        wanted = self._end - self._place if size < 0 else min(size, self._end - self._place)
        with files.reporting("read", self._path):
            pieces = []
            while wanted and (piece := files.system.read_at(self._fd, wanted, self._place)):
                pieces.append(piece)
                self._place += len(piece)
                wanted -= len(piece)
        data = b"".join(pieces)
        self.crc = zlib.crc32(data, self.crc)
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        self._place = place + (0, self._place, self._end)[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            files.system.close(self._fd)

    def __enter__(self) -> "_Bytes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(unit: Unit, how: Reading) -> Iterator[Batch]:
    """The rows of a unit, a few MiB at a time, in order.

    Rows that are not as :class:`records.Row` says are in ``rejected`` of a batch. Raises DataError
    for a file that cannot be read as what its name says, or that changed since it was planned.
    """
    for part in unit.parts:
        yield from _read_parquet(part, how) if part.format == "parquet" else _read_lines(part, how)


def _changed(part: Part) -> DataError:
    return DataError(
        f"{part.shown} changed while it was read; run the command again when nothing writes to it"
    )


def _read_lines(part: Part, how: Reading) -> Iterator[Batch]:
    decoder = msgspec.json.Decoder(row_type(how.text_field))
    packed = part.format != "jsonl"
    with _Bytes(part.path, part.begin, part.end) as raw:
        stream: Any = raw
        if packed:
            stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), part.format)
        row, offset = 0, part.begin
        for block, too_long in _blocks(part, stream.read, how.max_line):
            batch, lines = _decode_block(part, decoder, block, row, offset, how.max_line)
            row += lines
            offset += len(block)
            if too_long:
                batch.rejected.append(Rejected(part, row, _too_long(how.max_line), None))
                row += 1
                offset += too_long
            yield batch
        if packed:
            raw.read()  # what follows the last compressed frame counts as well
        if raw.crc != part.crc:
            raise _changed(part)


def _blocks(
    part: Part, read: Callable[[int], bytes], max_line: int
) -> Iterator[tuple[bytes, int]]:
    """Whole lines of some MiB together, and the length of an oversized line dropped after them."""
    pieces: list[bytes] = []
    held = dropped = 0
    while chunk := _read_chunk(part, read):
        if dropped:
            end = chunk.find(b"\n") + 1
            dropped += end or len(chunk)
            if not end:
                continue
            yield b"", dropped
            dropped, chunk = 0, chunk[end:]
        cut = chunk.rfind(b"\n") + 1
        if cut:
            pieces.append(chunk[:cut])
            yield b"".join(pieces), 0
            pieces, held, chunk = [], 0, chunk[cut:]
        if chunk:
            pieces.append(chunk)
            held += len(chunk)
        if held > max_line:
            dropped, held, pieces = held, 0, []
    if dropped:
        yield b"", dropped
    elif pieces:
        yield b"".join(pieces), 0


def _read_chunk(part: Part, read: Callable[[int], bytes]) -> bytes:
    try:
        return read(BLOCK)
    except OSError as error:  # how Arrow reports damaged or truncated compressed data
        raise DataError(
            f"{part.shown}: cannot be unpacked ({error}); the file is damaged or cut short, "
            "so fetch or compress it again"
        ) from None


def _decode_block(
    part: Part, decoder: "msgspec.json.Decoder[Row]", block: bytes, row: int, offset: int, max_line: int
) -> tuple[Batch, int]:
    """The rows of whole lines, and how many lines there are, blank ones too."""
    lines = find_lines(block)
    starts, ends = lines.starts.tolist(), lines.ends.tolist()
    numbers = (lines.numbers + row).tolist()
    reasons: dict[int, str] = {}
    for index in np.flatnonzero(lines.ends - lines.starts > max_line).tolist():
        reasons[index] = _too_long(max_line)
    for index in np.flatnonzero(lines.suspicious).tolist():
        if (key := duplicate_key(block[starts[index] : ends[index]])) is not None:
            reasons[index] = f"the key {key!r} is there twice; each key may be there once"
    fields: list[Row] | None = None
    if not reasons:
        # A line in need of a reason is found one by one, and that is rare.
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            fields = decoder.decode_lines(block)
    kept = list(range(len(starts)))
    if fields is None or len(fields) != len(starts):
        fields, kept = [], []
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            try:
                if index not in reasons:
                    fields.append(decoder.decode(block[start:end]))
                    kept.append(index)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                reasons[index] = reason_of(block[start:end], error)
    rejected = [
        Rejected(
            part,
            numbers[index],
            reasons[index],
            block[starts[index] : ends[index]] if ends[index] - starts[index] <= max_line else None,
        )
        for index in sorted(reasons)
    ]
    texts = pa.array([fields_of.text for fields_of in fields], pa.string())
    for fields_of in fields:
        fields_of.text = ""
    batch = Batch(
        part,
        [numbers[index] for index in kept],
        [
            f"{part.file}:{offset + starts[index]}" if no_id(fields_of.id) else str(fields_of.id)
            for index, fields_of in zip(kept, fields, strict=True)
        ],
        texts,
        fields,
        lambda index: block[starts[kept[index]] : ends[kept[index]]],
        rejected,
    )
    return batch, lines.count


def _too_long(max_line: int) -> str:
    return f"the line has more than {max_line} bytes; split the row, or raise --max-line"


def no_id(value: Any) -> bool:
    """True where a row has no id of its own."""
    return value is None or value is msgspec.UNSET


def _opened_parquet(path: Path, shown: str) -> "pq.ParquetFile":
    size = files.system.stat(path).st_size if not path.is_symlink() else path.stat().st_size
    try:
        return pq.ParquetFile(
            pa.PythonFile(_Bytes(path, 0, size), "r"), page_checksum_verification=True
        )
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{shown}: not a Parquet file that can be read ({error})") from None


def _read_parquet(part: Part, how: Reading) -> Iterator[Batch]:
    with _opened_parquet(part.path, part.shown) as file:
        schema = file.schema_arrow
        if how.text_field not in schema.names:
            raise DataError(
                f"{part.shown} has no column {how.text_field!r}; its columns are "
                f"{', '.join(schema.names)}; name the one with the text by --text-field"
            )
        kind = schema.field(how.text_field).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(
                f"{part.shown}: the column {how.text_field!r} is of type {kind}; it must be string"
            )
        extra = [name for name in Row.optional if name in schema.names and name != how.text_field]
        row = 0
        groups = list(range(part.begin, part.end))
        per_row = max(1, _bytes_per_row(file, groups))
        try:
            for batch in file.iter_batches(
                max(1, BLOCK // per_row), groups, [how.text_field, *extra]
            ):
                yield _parquet_batch(part, batch, how.text_field, extra, row)
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{part.shown}: cannot be read as Parquet ({error})") from None


def _bytes_per_row(file: "pq.ParquetFile", groups: list[int]) -> int:
    facts = [file.metadata.row_group(group) for group in groups]
    rows = sum(fact.num_rows for fact in facts)
    return sum(fact.total_byte_size for fact in facts) // max(1, rows)


def _parquet_batch(
    part: Part, batch: "pa.RecordBatch", text_field: str, extra: list[str], row: int
) -> Batch:
    texts = batch.column(text_field).cast(pa.string())
    rejected: list[Rejected] = []
    fields: list[Row] = []
    kept: list[int] = []
    others = batch.select(extra).to_pylist() if extra else [{} for _ in range(len(batch))]
    missing = texts.is_null().to_pylist()
    for index, values in enumerate(others):
        values = {key: _plain(value) for key, value in values.items() if value is not None}
        try:
            if missing[index]:
                raise msgspec.ValidationError(f"{text_field!r} is null; it must be a string")
            fields.append(msgspec.convert(values | {"text": ""}, Row))
            kept.append(index)
        except msgspec.ValidationError as error:
            content = msgspec.json.encode(values)
            rejected.append(Rejected(part, row + index, str(error), content))
    if len(kept) < len(batch):
        texts = texts.take(pa.array(kept, pa.int32()))
    return Batch(
        part,
        [row + index for index in kept],
        [
            f"{part.file}:{part.first_row + row + index}" if no_id(item.id) else str(item.id)
            for index, item in zip(kept, fields, strict=True)
        ],
        texts,
        fields,
        lambda index: msgspec.json.encode(batch.slice(kept[index], 1).to_pylist()[0]),
        rejected,
    )


def _plain(value: Any) -> Any:
    """Arrow's map (a list of pairs) and struct (with nulls for absent names) as a dictionary."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        value = dict(value)
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return value
