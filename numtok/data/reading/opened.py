"""Inputs that are open to be read, a file on the disk and an object of a store in one way."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from numtok import files
from numtok.data.reading.addresses import Address
from numtok.data.reading.stamp import Stamp


class OpenInput(Protocol):
    """One input, open; all raise StoreError where it cannot be read."""

    def pieces(self) -> Iterator[bytes]:
        """All of it from its beginning, some MiB at a time."""

    def read_at(self, size: int, place: int) -> bytes:
        """Up to so many bytes from ``place`` on; none at its end."""

    def stamp(self) -> Stamp:
        """Of what was read last."""

    def close(self) -> None:
        """Let go of it; no error of that is raised."""


class OpenFile:
    """A regular file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with files.reporting("read", path):
            self._fd = files.system.open_read(path)

    def pieces(self) -> Iterator[bytes]:
        """As of :class:`OpenInput`."""
        while True:
            with files.reporting("read", self._path):
                piece = files.system.read(self._fd, files.PIECE)
            if not piece:
                return
            yield piece

    def read_at(self, size: int, place: int) -> bytes:
        """As of :class:`OpenInput`."""
        with files.reporting("read", self._path):
            return files.system.read_at(self._fd, size, place)

    def stamp(self) -> Stamp:
        """Of the file as it is now."""
        with files.reporting("read", self._path):
            status = files.system.fstat(self._fd)
        return Stamp(status.st_size, status.st_mtime_ns)

    def close(self) -> None:
        """As of :class:`OpenInput`."""
        # Nothing is lost by it, and raised while a generator is collected it would be printed.
        with suppress(OSError):
            files.system.close(self._fd)


def open_input(path: Path | Address, ahead: tuple[int, int] | None = None) -> OpenInput:
    """Open one; ``ahead`` are the bytes that will be read in order, for what is far away."""
    if isinstance(path, Path):
        return OpenFile(path)
    from numtok.data.reading.objects import OpenObject  # imports fsspec

    return OpenObject(path, ahead)
