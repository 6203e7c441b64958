"""Parts of input files (byte ranges or row groups), and access to their bytes."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from numtok import files
from numtok.data.reading.addresses import Address
from numtok.data.reading.checksum import Checksum, Stamp, changed


class OpenInput(Protocol):
    """Protocol for open input files and remote objects.

    Methods raise StoreError if the input cannot be read.
    """

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes from the beginning, a few MiB at a time."""

    def read_at(self, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes at ``offset``, or no bytes at the end of the input."""

    def stamp(self) -> Stamp:
        """Return the current stamp of the input (for a remote object, as of the last read)."""

    def close(self) -> None:
        """Close the input without raising errors."""


class OpenFile:
    """Implementation of :class:`OpenInput` for regular files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with files.reporting("read", path):
            self._fd = files.system.open_read(path)

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes of the file; see :class:`OpenInput`."""
        while True:
            with files.reporting("read", self._path):
                piece = files.system.read(self._fd, files.PIECE)
            if not piece:
                return
            yield piece

    def read_at(self, size: int, offset: int) -> bytes:
        """Return bytes at an offset; see :class:`OpenInput`."""
        with files.reporting("read", self._path):
            return files.system.read_at(self._fd, size, offset)

    def stamp(self) -> Stamp:
        """Return the current stamp of the file."""
        with files.reporting("read", self._path):
            status = files.system.fstat(self._fd)
        return Stamp(status.st_size, status.st_mtime_ns)

    def close(self) -> None:
        """Close the file; see :class:`OpenInput`."""
        # The input was only read. An error raised while a generator is collected would be printed.
        with suppress(OSError):
            files.system.close(self._fd)


def open_input(path: Path | Address, ahead: tuple[int, int] | None = None) -> OpenInput:
    """Open a file or a remote object for reading.

    ``ahead`` is the byte range to prefetch from a remote object; a negative end means all bytes.
    """
    if isinstance(path, Path):
        return OpenFile(path)
    from numtok.data.reading.objects import OpenObject  # imports fsspec

    return OpenObject(path, ahead)


class FilePart(NamedTuple):
    """A part of an input file: bytes [begin, end), or row groups [begin, end) of Parquet."""

    file: int  # index among the inputs
    path: Path | Address
    shown: str
    split: str | None
    format: str
    begin: int
    end: int
    first_row: int  # Parquet only: number of rows in earlier parts
    checksum: Checksum  # of the bytes; empty for Parquet
    size: int  # bytes of input
    stamp: Stamp


def location_of(part: FilePart, row: int) -> str:
    """Return the location of a row: ``data.jsonl:17`` or ``data.parquet, row 16``.

    ``row`` is the index of the row's line within the part.
    """
    separator = ", row " if part.format == "parquet" else ":"
    return f"{part.shown}{separator}{row + first_number(part)}"


@lru_cache
def first_number(part: FilePart) -> int:
    """Return the number of a part's first row, counted from 1 for lines and from 0 for Parquet.

    The lines before the part are only counted by this function, which is called to report errors.
    """
    if part.format == "parquet":
        return part.first_row
    lines = 1
    if part.format == "jsonl" and part.begin:
        with PartBytes(part, 0, part.begin) as raw:
            while piece := raw.read(files.PIECE):
                lines += piece.count(b"\n")
    return lines


class PartBytes:
    """File-like object for the bytes [begin, end) of the file of a part, with a checksum."""

    def __init__(self, part: FilePart, begin: int, end: int, checked: bool = True) -> None:
        self._part, self._end, self._checked = part, end, checked
        self._place = begin
        self.checksum = Checksum()
        self.closed = False
        # Arrow seeks back and forth in Parquet files, so prefetching does not help.
        self._input = open_input(part.path, None if part.format == "parquet" else (begin, end))

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes, or all bytes up to the end if ``size`` is negative.

        Fewer bytes are returned if the file was truncated. The bytes are added to the checksum if
        ``checked`` is true. Raises StoreError if reading fails.
        """
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
        """Name of the file as the user wrote it."""
        return self._part.shown

    def check(self) -> None:
        """Raise DataError if the file changed since it was planned."""
        if self._input.stamp() != self._part.stamp:
            raise changed(self.shown)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset in the file, and return the new offset.

        ``offset`` is relative to the start of the file if ``whence`` is 0, to the current offset if
        it is 1, and to the end of the part if it is 2.
        """
        self._place = offset + (0, self._place, self._end)[whence]
        return self._place

    def tell(self) -> int:
        """Return the current offset, counted from the start of the file (not of the part)."""
        return self._place

    def readable(self) -> bool:
        """Return True. Libraries call this before they read from a file-like object."""
        return True

    def seekable(self) -> bool:
        """Return True. Seeking is possible in both directions."""
        return True

    def close(self) -> None:
        """Close the file without raising errors. Further calls have no effect."""
        if not self.closed:
            self.closed = True
            self._input.close()

    def __enter__(self) -> "PartBytes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
