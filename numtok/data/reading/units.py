"""Divide the inputs of a stage into units of work, then read the units.

A unit is about 64 MiB of input. The division depends only on the bytes of the inputs: a long file
is divided at line ends, small files share a unit, and a compressed file is one unit. :func:`plan`
reads every byte once to compute digests, several files in parallel. :func:`read` reads a unit again
as batches of rows, and raises an error if its bytes changed.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import pyarrow as pa

from numtok.data.reading.batches import ReadingOptions, RowBatch
from numtok.data.reading.checksum import Checksum, Stamp, changed
from numtok.data.reading.file_part import FilePart, open_input
from numtok.data.reading.first_bytes import FIRST_BYTES, format_of
from numtok.data.reading.jsonl import read_lines
from numtok.data.reading.parquet import read_parquet, row_groups
from numtok.data.reading.sources import InputFile
from numtok.errors import DataError
from numtok.store.artifact import Parent
from numtok.store.engines.engine import Engine
from numtok.stored_json import VERIFY

UNIT = 64 << 20  # bytes of input in a unit
_WHOLE = ("gzip", "zstd")  # formats that can only be read from the start
BLOCK = 2 << 20  # bytes read and encoded at a time; small enough for the CPU cache


@dataclass(frozen=True)
class Unit:
    """A unit of work: parts of input files that a stage processes together."""

    index: int
    parts: tuple[FilePart, ...]
    input: str  # digest of the content

    @property
    def size(self) -> int:
        """Number of input bytes in the unit."""
        return sum(part.size for part in self.parts)


def least_units(sources: Sequence[InputFile]) -> int:
    """Return a lower bound on the number of units that :func:`plan` creates."""
    cut = sum(source.size for source in sources if source.format not in _WHOLE) // UNIT
    return cut + sum(source.format in _WHOLE for source in sources)


def unread(sources: Sequence[InputFile]) -> Iterator[Unit]:
    """Yield each input as one unit, without computing its digest.

    This allows the rows to be inspected before :func:`plan` reads all bytes. Read the units with
    ``ReadingOptions(checked=False)``. Raises DataError if a Parquet file is invalid, and StoreError
    if a file cannot be read.
    """
    for index, source in enumerate(sources):
        with closing(open_input(source.path)) as file:
            form = format_of(file.read_at(FIRST_BYTES, 0), source.format)
            whole = _whole(index, source, form, file.stamp())
        parts = [whole]
        if whole.format == "parquet":
            parts = [
                whole._replace(begin=begin, end=end, first_row=first)
                for begin, end, first, _ in row_groups(whole, UNIT)
            ]
        yield Unit(index, tuple(parts), "")


def _whole(index: int, source: InputFile, form: str, stamp: Stamp) -> FilePart:
    """Return a whole input as one part, without a checksum."""
    return FilePart(
        file=index, path=source.path, shown=source.shown, split=source.split, format=form,
        begin=0, end=stamp.size, first_row=0, checksum=Checksum(), size=stamp.size, stamp=stamp,
    )  # fmt: skip


class _Survey(NamedTuple):
    """Result of one pass over the bytes of a file: its parts, its sha256, its size in bytes."""

    parts: list[FilePart]
    digest: str
    size: int


def plan(
    sources: Sequence[InputFile], progress: Callable[[int, int], None], workers: Engine
) -> tuple[list[Unit], list[Parent]]:
    """Read every input once, and return the units of work and the parents of the new artifact.

    A parent records the digest of an input file, or the data artifact that contains the file.
    ``progress`` is called with the number of bytes read so far and the total. If there are several
    files that together exceed the size of one unit, ``workers`` read them in parallel. Raises
    DataError if a file is empty, and StoreError if a file cannot be read.
    """
    units: list[Unit] = []
    parents: list[Parent] = []
    gathered: list[FilePart] = []
    digests: list[str] = []

    def close_unit() -> None:
        if gathered:
            content = [
                [digests[part.file], part.format, part.begin, part.end, part.split]
                for part in gathered
            ]
            digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()
            units.append(Unit(len(units), tuple(gathered), digest))
            gathered.clear()

    for source in sources:
        if source.written is not None and source.size != source.written.bytes:
            raise _changed(source)
    for source, survey in zip(sources, _surveys(sources, progress, workers), strict=True):
        if source.written is not None and source.written.sha256 != survey.digest:
            raise _changed(source)
        digests.append(survey.digest)
        parent = source.owner or Parent("file", source.shown, survey.digest, survey.size)
        if parent is not (parents[-1] if parents else None):  # once for all files of an artifact
            parents.append(parent)
        for part in survey.parts:
            own_unit = part.format in _WHOLE
            if gathered and (own_unit or sum(p.size for p in gathered) + part.size > UNIT):
                close_unit()
            gathered.append(part)
            if own_unit:
                close_unit()
    close_unit()
    return units, parents


def _surveys(
    sources: Sequence[InputFile], progress: Callable[[int, int], None], workers: Engine
) -> Iterator[_Survey]:
    total = sum(source.size for source in sources)
    done = 0

    def advance(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    if len(sources) == 1 or workers.count == 1 or total <= UNIT:
        for index, source in enumerate(sources):
            yield _survey(index, source, UNIT, advance)
        return
    files = [(index, source, UNIT) for index, source in enumerate(sources)]
    for survey in workers.in_order(_survey_of, files):
        advance(survey.size)
        yield survey


def _survey_of(file: tuple[int, InputFile, int]) -> _Survey:
    return _survey(*file, lambda size: None)


def _changed(source: InputFile) -> DataError:
    owner = source.owner.where if source.owner else ""
    return DataError(f"{source.shown} of {owner} changed since it was written. {VERIFY}")


def _survey(index: int, source: InputFile, unit: int, progress: Callable[[int], None]) -> _Survey:
    """Hash one input and divide it into parts of about ``unit`` bytes."""
    form = source.format
    digest = hashlib.sha256()
    bounds: list[tuple[int, int, int, Checksum]] = []  # begin, end, first row
    begin, size, check = 0, 0, Checksum()
    # Hashing takes most of the time, so it runs in a separate thread.
    with ThreadPoolExecutor(1) as hashing, closing(open_input(source.path, (0, -1))) as file:
        hashed = hashing.submit(digest.update, b"")
        before = file.stamp()
        for piece in file.pieces():
            form = form if size else format_of(piece[:FIRST_BYTES], form)
            hashed.result()
            hashed = hashing.submit(digest.update, piece)
            progress(len(piece))
            cut = 0
            if form == "jsonl" and size + len(piece) - begin > unit:
                cut = piece.find(b"\n", max(0, begin + unit - size)) + 1
            if cut:
                check = check.over(piece[:cut])
                bounds.append((begin, size + cut, 0, check))
                begin, check = size + cut, Checksum()
            check = check.over(memoryview(piece)[cut:])
            size += len(piece)
        hashed.result()
        stamp = file.stamp()
    if not before == stamp == Stamp(size, stamp.modified):
        raise changed(source.shown)
    if not size:
        raise DataError(f"{source.shown} is empty. Pass a file with at least one row")
    if size > begin:
        bounds.append((begin, size, 0, check))

    whole, share = _whole(index, source, form, stamp), 0
    if form == "parquet":
        bounds = row_groups(whole, unit)
        share = size // len(bounds)
    parts = [
        whole._replace(
            begin=begin, end=end, first_row=first, checksum=check, size=share or end - begin
        )
        for begin, end, first, check in bounds
    ]
    return _Survey(parts, digest.hexdigest(), size)


def read(unit: Unit, how: ReadingOptions) -> Iterator[RowBatch]:
    """Yield the rows of a unit in order, in batches of a few MiB.

    Invalid rows (see :class:`row.Row`) are in :attr:`RowBatch.rejected`. Raises DataError if a file
    cannot be read in its format, or changed since the units were planned.
    """
    # Arrow's default pool never returns freed memory: one row of 100 MB would occupy it to the end.
    pa.set_memory_pool(pa.system_memory_pool())
    for part in unit.parts:
        rows_of = read_parquet if part.format == "parquet" else read_lines
        yield from rows_of(part, how, BLOCK)
