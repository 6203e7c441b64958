"""A part: some rows of one input file, as they were when the work was planned."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from numtok import files
from numtok.data.reading.addresses import Address
from numtok.data.reading.checksum import Checksum, Stamp, changed


class OpenInput(Protocol):
    """One input, open; all raise StoreError where it cannot be read."""

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes from the beginning, some MiB at a time."""

    def read_at(self, size: int, place: int) -> bytes:
        """Read up to ``size`` bytes from ``place`` on; none at the end."""

    def stamp(self) -> Stamp:
        """Return the stamp of the last read."""

    def close(self) -> None:
        """Close the input without raising errors."""


class OpenFile:
    """A regular file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with files.reporting("read", path):
            self._fd = files.system.open_read(path)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes; see :class:`OpenInput`."""
        while True:
            with files.reporting("read", self._path):
                piece = files.system.read(self._fd, files.PIECE)
            if not piece:
                return
            yield piece

    def read_at(self, size: int, place: int) -> bytes:
        """Read at a place; see :class:`OpenInput`."""
        with files.reporting("read", self._path):
            return files.system.read_at(self._fd, size, place)

    def stamp(self) -> Stamp:
        """Return the current stamp of the file."""
        with files.reporting("read", self._path):
            status = files.system.fstat(self._fd)
        return Stamp(status.st_size, status.st_mtime_ns)

    def close(self) -> None:
        """Close the file; see :class:`OpenInput`."""
        # Nothing is lost by it, and raised while a generator is collected it would be printed.
        with suppress(OSError):
            files.system.close(self._fd)


def open_input(path: Path | Address, ahead: tuple[int, int] | None = None) -> OpenInput:
    """Open one; ``ahead`` are the bytes that will be read in order, for what is far away."""
    if isinstance(path, Path):
        return OpenFile(path)
    from numtok.data.reading.objects import OpenObject  # imports fsspec

    return OpenObject(path, ahead)


class FilePart(NamedTuple):
    """Some rows of one file: bytes [begin, end), or row groups of Parquet."""

    file: int  # index among the inputs
    path: Path | Address
    shown: str
    split: str | None
    format: str
    begin: int
    end: int
    first_row: int  # of Parquet: rows before it are in other parts
    checksum: Checksum  # of the bytes; of Parquet that of none
    size: int  # bytes of input
    stamp: Stamp


def place_of(part: FilePart, row: int) -> str:
    """``data.jsonl, line 17`` or ``data.parquet, row 16``, for a row counted within its part."""
    kind = "row" if part.format == "parquet" else "line"
    return f"{part.shown}, {kind} {row + first_number(part)}"


@lru_cache
def first_number(part: FilePart) -> int:
    """The number of a part's first row; lines are counted only when an error must name one."""
    if part.format == "parquet":
        return part.first_row
    lines = 1
    if part.format == "jsonl" and part.begin:
        with PartBytes(part, 0, part.begin) as raw:
            while piece := raw.read(files.PIECE):
                lines += piece.count(b"\n")
    return lines


class PartBytes:
    """Bytes [begin, end) of a part's file as Python's file protocol, with a running checksum."""

    def __init__(self, part: FilePart, begin: int, end: int, checked: bool = True) -> None:
        self._part, self._end, self._checked = part, end, checked
        self._place = begin
        self.checksum = Checksum()
        self.closed = False
        # Arrow goes to and fro in Parquet.
        self._input = open_input(part.path, None if part.format == "parquet" else (begin, end))

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or all to the end; fewer where the file has become shorter. They enter
        the checksum if it is ``checked``. Raises StoreError where the disk fails."""
        wanted = self._end - self._place if size < 0 else min(size, self._end - self._place)
        pieces = []
        while wanted and (piece := self._input.read_at(wanted, self._place)):
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
        if self._input.stamp() != self._part.stamp:
            raise changed(self.shown)

    def seek(self, place: int, whence: int = 0) -> int:
        """As of a file, with the end of these bytes for its end; offsets are those in the whole
        file."""
        self._place = place + (0, self._place, self._end)[whence]
        return self._place

    def tell(self) -> int:
        """The offset in the whole file of the byte that is read next."""
        return self._place

    def readable(self) -> bool:
        """Always: libraries ask a file-like object before they read it."""
        return True

    def seekable(self) -> bool:
        """Always, also backwards."""
        return True

    def close(self) -> None:
        """Let go of the file; a second call does nothing, and no error of it is raised."""
        if not self.closed:
            self.closed = True
            self._input.close()

    def __enter__(self) -> "PartBytes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
