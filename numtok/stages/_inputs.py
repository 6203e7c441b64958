"""Inputs of a stage: which files, which units of work, which rows.

A unit is a share of the input's bytes, 64 MiB or so, whose bounds depend on
nothing but those bytes: a long file is cut at line ends, small files share a
unit, a compressed file is one unit. :func:`plan` reads every byte once, for the
digests; :func:`read` reads a unit again as batches of rows and notices if it is
not what was digested.
"""

import hashlib
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
from numpy.typing import NDArray

from numtok import files
from numtok.artifact import FILES, MANIFEST, Parent
from numtok.errors import DataError, NumtokError, UsageError
from numtok.records import DATA, SPLIT_RULE, Row, is_split, row_type
from numtok.stages._arrow import column
from numtok.stages._checksum import Checksum
from numtok.stages._lines import (
    UNREADABLE,
    find_lines,
    problem_of,
    reason_of,
    validation_reason,
)
from numtok.stages._rows import Places, Rows, far_out, outside
from numtok.stages._splits import SplitRule
from numtok.store import Store

UNIT = 64 << 20  # bytes of input in a unit
BLOCK = 2 << 20  # bytes read and encoded at a time: what is made of them stays in the cache
_STDIN = "standard input"
FORMATS = {".jsonl": "jsonl", ".jsonl.gz": "gzip", ".jsonl.zst": "zstd", ".parquet": "parquet"}


class _Object(msgspec.Struct, gc=False):
    """Any JSON object: reading one says whether it is JSON."""


_SYNTAX = msgspec.json.Decoder(_Object)


class Source(NamedTuple):
    """One input file, and the split that its place or the command gives all its rows."""

    path: Path
    split: str | None
    shown: str  # as the user named it
    owner: Parent | None = None  # the data artifact that it belongs to
    sha256: str | None = None  # what that artifact says the file has

    @property
    def format(self) -> str:
        """How it is read, by its name."""
        return _format_of(self.path) or "jsonl"


class Stamp(NamedTuple):
    """Says, without reading it again, whether a file was changed since it was planned."""

    size: int
    modified: int  # nanoseconds


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
    checksum: Checksum  # of the bytes; of Parquet that of none
    size: int  # bytes of input
    stamp: Stamp


@dataclass(frozen=True)
class Unit:
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
        return DataError(
            f"{place_of(self.part, self.row)}: {self.reason} "
            "(--on-error skip leaves such rows out and keeps them aside)"
        )

    @property
    def number(self) -> int:
        """The line of the file, from 1; of Parquet the row, from 0."""
        return self.row + _first_number(self.part)


@dataclass
class Batch:
    """Rows of one part."""

    part: Part
    numbers: NDArray[np.int32]  # [n] lines of the part before each
    rows: Rows
    contents: Callable[[int], bytes]  # the row as it was read, for rejecting it
    rejected: list[Rejected] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, keep: NDArray[np.int64]) -> "Batch":
        """The rows at some indices, which rise."""
        contents = self.contents
        return Batch(
            self.part,
            self.numbers[keep],
            self.rows.take(keep),
            lambda index: contents(int(keep[index])),
            self.rejected,
        )

    def release(self) -> None:
        """Give the memory of the texts back; those who iterate still hold the batch itself."""
        self.rows = self.rows.without_texts()
        self.contents = lambda index: b""

    def reject(self, index: int, reason: str) -> Rejected:
        """The row at an index as one that cannot be used."""
        return Rejected(self.part, int(self.numbers[index]), reason, self.contents(index))


@dataclass(frozen=True)
class Reading:
    """How inputs are read."""

    text_field: str = "text"
    max_line: int = 256 << 20  # bytes
    checked: bool = True  # compare the bytes with the plan's; a pass that another follows need not


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
        with _Bytes(part, 0, part.begin) as raw:
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
        elif Path(path).exists() and not _is_artifact(Path(path)):
            found = [Source(file, split, str(file)) for file in _files_below(Path(path))]
            stem = Path(path).resolve().name
        else:
            found = _of_artifact(path, split, store)
            stem = found[0].owner.where.partition("@")[0] if found[0].owner else path
        sources += found
        name = name or _as_name(stem)
    if sum(source.shown == _STDIN for source in sources) > 1:
        raise UsageError("standard input (-) can be given once")
    seen: set[Path] = set()
    for source in sources:
        if (real := source.path.resolve()) in seen:
            raise UsageError(f"{source.shown} is given twice; give each file once")
        seen.add(real)
    return sources, name


def check_rule(rule: SplitRule | None, sources: Sequence[Source]) -> None:
    """UsageError for a ``--split`` that no row is left for."""
    if rule and all(source.split is not None for source in sources):
        raise UsageError(
            "--split has no effect here: every input is given as a split already; leave it "
            "out, or give inputs without split="
        )


def spool_stdin(folder: Path) -> Path:
    """Standard input as a file: it can be read only once, and is needed twice."""
    path = folder / "stdin.jsonl"
    with files.Sink(path) as sink, files.reporting("read", Path("standard input")):
        while piece := files.system.read(0, files.PIECE):
            sink.write(piece)
    return path


def _split_and_path(argument: str) -> tuple[str | None, str]:
    split, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        return None, argument
    if not path or not is_split(split):
        raise UsageError(
            f"{argument!r}: {split!r} cannot be the name of a split; write split=PATH, "
            f"the split in {SPLIT_RULE}"
        )
    return split, path


def _format_of(path: Path) -> str | None:
    for suffix, form in FORMATS.items():
        if path.name.endswith(suffix):
            return form
    return None


def _is_artifact(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and (folder / FILES).is_file()


def _files_below(path: Path) -> list[Path]:
    if path.is_dir():
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and _format_of(file)
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
            # What numtok made lies in the same tree where the store does.
            and not any(_is_artifact(folder) for folder in file.parents)
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
    try:
        artifact = store.resolve(ref, kinds={DATA})
    except NumtokError as error:
        raise type(error)(f"{ref}: there is no such file or folder, and {error}") from None
    owner = artifact.as_parent()
    sources = [
        Source(
            artifact.path / file.path,
            split or file.path.rpartition("-")[0],
            file.path,
            owner,
            file.sha256,
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
    sources: Sequence[Source], progress: Callable[[int, int], None]
) -> tuple[list[Unit], list[Parent]]:
    """Read every input once: the units of work, and the parents with their digests.

    ``progress`` is told the bytes done and their sum. Raises DataError for an empty file,
    StoreError for one that cannot be read.
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
        progress(done, total)

    def close_unit() -> None:
        if gathered:
            content = [
                [digests[part.file], part.format, part.begin, part.end, part.split]
                for part in gathered
            ]
            digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()
            units.append(Unit(len(units), tuple(gathered), digest))
            gathered.clear()

    for index, source in enumerate(sources):
        parts, digest, size = _survey(index, source, advance)
        if source.sha256 not in (None, digest):
            raise DataError(
                f"{source.shown} of {source.owner.where if source.owner else ''} is not what was "
                "written there; `numtok verify` says what is damaged"
            )
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
    form = source.format
    digest = hashlib.sha256()
    bounds: list[tuple[int, int, int, Checksum]] = []  # begin, end, first row
    begin, size, check = 0, 0, Checksum()
    with files.reporting("read", source.path):
        fd = files.system.open_read(source.path)
        try:
            before = _stamp(fd)
            while piece := files.system.read(fd, files.PIECE):
                digest.update(piece)
                progress(len(piece))
                cut = 0
                if form == "jsonl" and size + len(piece) - begin > UNIT:
                    cut = piece.find(b"\n", max(0, begin + UNIT - size)) + 1
                if cut:
                    check = check.over(piece[:cut])
                    bounds.append((begin, size + cut, 0, check))
                    begin, check = size + cut, Checksum()
                check = check.over(memoryview(piece)[cut:])
                size += len(piece)
            stamp = _stamp(fd)
        finally:
            files.system.close(fd)
    if not before == stamp == Stamp(size, stamp.modified):
        raise _changed(source.shown)
    if not size:
        raise DataError(f"{source.shown} is empty; give a file with at least one row")
    if size > begin:
        bounds.append((begin, size, 0, check))

    def part(begin: int, end: int, first: int, check: Checksum, size: int) -> Part:
        return Part(
            index, source.path, source.shown, source.split, form, begin, end, first, check, size,
            stamp,
        )  # fmt: skip

    if form == "parquet":
        bounds = _row_groups(part(0, size, 0, Checksum(), size))
        share = size // len(bounds)
        return [part(*bound, share) for bound in bounds], digest.hexdigest(), size
    return [part(*bound, bound[1] - bound[0]) for bound in bounds], digest.hexdigest(), size


def _stamp(fd: int) -> Stamp:
    status = files.system.fstat(fd)
    return Stamp(status.st_size, status.st_mtime_ns)


def _row_groups(whole: Part) -> list[tuple[int, int, int, Checksum]]:
    """Runs of row groups of some 64 MiB uncompressed."""
    with _Bytes(whole, 0, whole.size) as raw, _parquet(raw, whole) as file:
        bounds: list[tuple[int, int, int, Checksum]] = []
        begin, first, row, gathered = 0, 0, 0, 0
        for group in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(group)
            if group > begin and gathered + facts.total_byte_size > UNIT:
                bounds.append((begin, group, first, Checksum()))
                begin, first, gathered = group, row, 0
            gathered += facts.total_byte_size
            row += facts.num_rows
        if not row:
            raise DataError(f"{whole.shown} has no rows; give a file with at least one")
        bounds.append((begin, file.metadata.num_row_groups, first, Checksum()))
        return bounds


class _Bytes:
    """Bytes [begin, end) of a part's file as Python's file protocol, with a running checksum."""

    def __init__(self, part: Part, begin: int, end: int, checked: bool = True) -> None:
        self._part, self._path, self._end, self._checked = part, part.path, end, checked
        self._place = begin
        self.checksum = Checksum()
        self.closed = False
        with files.reporting("read", self._path):
            self._fd = files.system.open_read(self._path)

    def read(self, size: int = -1) -> bytes:
        wanted = self._end - self._place if size < 0 else min(size, self._end - self._place)
        with files.reporting("read", self._path):
            pieces = []
            while wanted and (piece := files.system.read_at(self._fd, wanted, self._place)):
                pieces.append(piece)
                self._place += len(piece)
                wanted -= len(piece)
        data = b"".join(pieces)
        if self._checked:
            self.checksum = self.checksum.over(data)
        return data

    @property
    def shown(self) -> str:
        """The file as the user named it."""
        return self._part.shown

    def check(self) -> None:
        """DataError if the file is no longer as it was planned."""
        with files.reporting("read", self._path):
            if _stamp(self._fd) != self._part.stamp:
                raise _changed(self.shown)

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
            # Nothing is lost by it, and raised while a generator is collected it would be printed.
            with suppress(OSError):
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
    # Arrow's own pool keeps what is freed: one row of 100 MB would cost its memory to the end.
    pa.set_memory_pool(pa.system_memory_pool())
    for part in unit.parts:
        yield from _read_parquet(part, how) if part.format == "parquet" else _read_lines(part, how)


def _changed(shown: str) -> DataError:
    return DataError(
        f"{shown} changed while it was read; run the command again when nothing writes to it"
    )


def _read_lines(part: Part, how: Reading) -> Iterator[Batch]:
    decoder = msgspec.json.Decoder(row_type(how.text_field))
    packed = part.format != "jsonl"
    with _Bytes(part, part.begin, part.end, how.checked) as raw:
        stream: Any = raw
        if packed:
            stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), part.format)
        row, offset = 0, part.begin
        for block, dropped in _blocks(raw, stream.read, how.max_line):
            raw.check()  # before a row that is half overwritten is called malformed
            batch, lines = _decode_block(part, decoder, block, row, offset, how)
            row += lines
            offset += len(block)
            del block  # the batch has it until it is released
            if dropped is not None:
                if not dropped.blank:
                    batch.rejected.append(Rejected(part, row, _too_long(how.max_line), None))
                row += 1
                offset += dropped.size
            yield batch
        if packed:
            raw.read()  # what follows the last compressed frame counts as well
        if how.checked and raw.checksum != part.checksum:
            raise _changed(part.shown)


@dataclass
class _Dropped:
    """A line that is too long to be held."""

    size: int = 0
    blank: bool = True

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self.blank = self.blank and not piece.strip(b" \t\r\n")


def _blocks(
    raw: _Bytes, read: Callable[[int], bytes], max_line: int
) -> Iterator[tuple[bytes, _Dropped | None]]:
    """Whole lines of some MiB together, and the line dropped after them, if one was."""
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
    """The pieces as one block, which nobody else holds: a long line is in memory once."""
    block = b"".join(pieces)
    pieces.clear()
    return block


def _read_chunk(raw: _Bytes, read: Callable[[int], bytes]) -> bytes:
    try:
        return read(BLOCK)
    except OSError as error:  # how Arrow reports damaged or truncated compressed data
        raw.check()
        raise DataError(
            f"{raw.shown}: cannot be unpacked ({error}); the file is damaged or cut short, "
            "so fetch or compress it again"
        ) from None


def _decode_block(
    part: Part,
    decoder: "msgspec.json.Decoder[Row]",
    block: bytes,
    row: int,
    offset: int,
    how: Reading,
) -> tuple[Batch, int]:
    """The rows of whole lines, and how many lines there are, blank ones too."""
    lines = find_lines(block, how.text_field)
    starts, ends = lines.starts, lines.ends
    numbers = lines.numbers + np.int32(row)
    too_long = ends - starts > how.max_line
    if not (lines.suspicious | too_long).any() and len(starts):
        # Of malformed lines each is looked at below, and that is rare.
        with suppress(*UNREADABLE):
            _SYNTAX.decode_lines(block)
            rows = Rows.of_values(block, lines, Places(part.file, offset + starts))
            if rows is not None:
                contents = lambda index: block[starts[index] : ends[index]]  # noqa: E731
                return Batch(part, numbers, rows, contents), lines.total

    reasons: dict[int, str] = {}
    records: list[Row] = []
    kept = []
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        line = block[start:end]
        if too_long[index]:
            reasons[index] = _too_long(how.max_line)
            continue
        if lines.suspicious[index] and (reason := problem_of(line, decoder)):
            reasons[index] = reason
            continue
        try:
            record = decoder.decode(line)
        except UNREADABLE as error:
            reasons[index] = reason_of(line, error)
            continue
        if what := far_out(record):
            reasons[index] = outside(what, record.text)
            continue
        records.append(record)
        kept.append(index)
    rejected = [
        Rejected(
            part,
            int(numbers[index]),
            reason,
            None if too_long[index] else block[starts[index] : ends[index]],
        )
        for index, reason in reasons.items()
    ]
    keep = np.array(kept, np.int64)
    rows = Rows.of_records(records, Places(part.file, offset + starts[keep]))
    batch = Batch(
        part,
        numbers[keep],
        rows,
        lambda index: block[starts[kept[index]] : ends[kept[index]]],
        rejected,
    )
    return batch, lines.total


def _too_long(max_line: int) -> str:
    return f"the line has more than {max_line} bytes; split the row, or raise --max-line"


def _parquet(raw: _Bytes, part: Part) -> "pq.ParquetFile":
    try:
        return pq.ParquetFile(pa.PythonFile(raw, "r"), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raw.check()
        raise DataError(
            f"{part.shown}: not a Parquet file that can be read ({error}); fetch or write it again"
        ) from None


def _read_parquet(part: Part, how: Reading) -> Iterator[Batch]:
    with _Bytes(part, 0, part.stamp.size) as raw, _parquet(raw, part) as file:
        _check_columns(part, file.schema_arrow, how.text_field)
        schema = file.schema_arrow
        extra = [name for name in Row.optional if name in schema.names and name != how.text_field]
        row = 0
        groups = list(range(part.begin, part.end))
        per_row = max(1, _bytes_per_row(file, groups))
        batches = file.iter_batches(max(1, BLOCK // per_row), groups, [how.text_field, *extra])
        while (batch := _next_batch(batches, raw)) is not None:
            raw.check()
            yield _parquet_batch(part, batch, how.text_field, extra, row)
            row += batch.num_rows


def _check_columns(part: Part, schema: "pa.Schema", text_field: str) -> None:
    """DataError for a column that is missing, or of a type that no row can have."""
    if {"tokens", "number_start"} <= set(schema.names):
        raise DataError(
            f"{part.shown} is encoded already (it has the columns tokens and number_start); "
            "give the data that it was made from"
        )
    if text_field not in schema.names:
        raise DataError(
            f"{part.shown} has no column {text_field!r}; its columns are "
            f"{', '.join(schema.names)}; name the one with the text by --text-field"
        )
    allowed = {
        text_field: ("string", "S"),
        "id": ("string or integer", "SIN"),
        "label": ("string or integer", "SIN"),
        "split": ("string", "SN"),
        "answer_start": ("integer", "IN"),
        "targets": ("a map or struct of lists of pairs of integers", "MSIN"),
        "group": ("a map or struct of strings and numbers", "MSIFBN"),
    }
    for name, (words, letters) in allowed.items():
        if name in schema.names:
            kind = schema.field(name).type
            if not _letters_of(kind) <= set(letters):
                raise DataError(
                    f"{part.shown}: the column {name!r} is of type {kind}; it must be {words}"
                )


def _letters_of(kind: Any) -> set[str]:
    """What an Arrow type is made of: S string, I integer, F float, B bool, N null, M nesting."""
    types = pa.types
    if types.is_dictionary(kind):
        return _letters_of(kind.value_type)
    if types.is_nested(kind):
        inner = (kind.field(k).type for k in range(kind.num_fields))
        return {"M"}.union(*map(_letters_of, inner))
    for letter, matches in (
        ("S", lambda kind: types.is_string(kind) or types.is_large_string(kind)),
        ("I", types.is_integer),
        ("F", types.is_floating),
        ("B", types.is_boolean),
        ("N", types.is_null),
    ):
        if matches(kind):
            return {letter}
    return {"?"}


def _next_batch(batches: Iterator["pa.RecordBatch"], raw: _Bytes) -> "pa.RecordBatch | None":
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raw.check()
        raise DataError(
            f"{raw.shown}: cannot be read as Parquet ({error}); fetch or write it again"
        ) from None


def _bytes_per_row(file: "pq.ParquetFile", groups: list[int]) -> int:
    facts = [file.metadata.row_group(group) for group in groups]
    rows: int = sum(fact.num_rows for fact in facts)
    size: int = sum(fact.total_byte_size for fact in facts)
    return size // max(1, rows)


def _parquet_batch(
    part: Part, batch: "pa.RecordBatch", text_field: str, extra: list[str], row: int
) -> Batch:
    rejected: list[Rejected] = []
    fields: list[Row] = []
    kept: list[int] = []
    broken = _invalid_utf8(batch)
    others = _others(batch, extra, broken)
    texts = batch.column(text_field)
    missing = texts.is_null().to_pylist()
    for index, values in enumerate(others):
        try:
            if index in broken:
                raise msgspec.ValidationError("a string is invalid UTF-8; write it as UTF-8")
            if missing[index]:
                raise msgspec.ValidationError(f"{text_field!r} is null; it must be a string")
            record = msgspec.convert(values | {"text": ""}, Row)
            if what := far_out(record):
                raise msgspec.ValidationError(outside(what, texts[index].as_py()))
            fields.append(record)
            kept.append(index)
        except msgspec.ValidationError as error:
            content = (
                texts[index].cast(pa.binary()).as_py()
                if index in broken
                else msgspec.json.encode(batch.slice(index, 1).to_pylist()[0])
            )
            reason = validation_reason(str(error))
            rejected.append(Rejected(part, row + index, reason, content))
    keep = np.array(kept, np.int64)
    if len(kept) < len(batch):
        texts = texts.take(column(keep))
    return Batch(
        part,
        (keep + row).astype(np.int32),
        Rows.of_records(
            fields, Places(part.file, keep + part.first_row + row), texts.cast(pa.string())
        ),
        lambda index: msgspec.json.encode(batch.slice(kept[index], 1).to_pylist()[0]),
        rejected,
    )


def _invalid_utf8(batch: "pa.RecordBatch") -> set[int]:
    """The rows with a string that is none: Parquet's writers and readers do not look."""

    def is_valid(rows: "pa.RecordBatch") -> bool:
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    if is_valid(batch):
        return set()
    return {index for index in range(len(batch)) if not is_valid(batch.slice(index, 1))}


def _others(batch: "pa.RecordBatch", extra: list[str], broken: set[int]) -> list[dict[str, Any]]:
    """The fields of each row beside its text; none of a broken one."""
    if not extra:
        return [{} for _ in range(len(batch))]
    chosen = batch.select(extra)
    rows = (
        [{} if k in broken else chosen.slice(k, 1).to_pylist()[0] for k in range(len(batch))]
        if broken
        else chosen.to_pylist()
    )
    return [{key: _plain(value) for key, value in row.items() if value is not None} for row in rows]


def _plain(value: Any) -> Any:
    """Arrow's map (a list of pairs) and struct (with nulls for absent names) as a dictionary."""
    if isinstance(value, list) and all(isinstance(item, tuple) for item in value):
        value = dict(value)
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return value
