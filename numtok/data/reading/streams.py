"""Inputs that can be read only once: standard input and pipes.

The shell replaces ``<(zcat x.gz)`` with a path such as ``/dev/fd/63``, which cannot be used to
name or describe the input.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from numtok import files
from numtok.errors import DataError
from numtok.store.quota import Quota

STDIN = "standard input"
_IS_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_NAMELESS = ("/dev/fd/", "/proc/")
_LONGEST = 256 << 20  # bytes of a line


def is_stdin(path: str) -> bool:
    """Return whether a path stands for standard input: ``-``, ``/dev/stdin`` or an equivalent."""
    return path in _IS_STDIN


def is_stream(path: str) -> bool:
    """Return whether a path is standard input or a pipe."""
    return is_stdin(path) or Path(path).is_fifo()


def stem_of(path: str) -> str:
    """Return a name for a stream, to be used in place of a file name.

    The name is ``stdin`` for standard input and for pipes created by the shell. For a named pipe,
    it is the file name.
    """
    return "stdin" if is_stdin(path) or path.startswith(_NAMELESS) else Path(path).name


@dataclass(frozen=True)
class Spool:
    """Saves standard input and pipes to files, because inputs are read twice.

    folder
        Function that creates a new folder for a saved stream.
    quota
        Limit on the bytes that may be written.
    longest
        Maximum number of bytes in a JSON line; None if long lines are skipped later.
    """

    folder: Callable[[], Path]
    quota: Quota
    longest: int | None = None

    def keep(self, path: str, ending: str) -> Path:
        """Save a stream to a file whose name ends in ``ending``, and return the path of the file.

        Raises UsageError if the quota is exceeded, DataError if a line is too long, and StoreError
        if reading or writing fails.
        """
        folder = self.folder()
        kept = folder / f"stdin{ending}"
        shown = STDIN if is_stdin(path) else path
        with (
            _descriptor(path) as fd,
            files.Sink(kept) as sink,
            files.reporting("read", Path(shown)),
        ):
            read: Callable[[int], bytes] = partial(files.system.read, fd)
            if self.longest is not None and ending == ".jsonl":
                read = _refusing_long_lines(read, shown, self.longest)
            self.quota.copy(shown, folder, read, sink.write)
        return kept


def _refusing_long_lines(
    read: Callable[[int], bytes], shown: str, longest: int
) -> Callable[[int], bytes]:
    """Wrap ``read`` to raise DataError as soon as a line is too long, because it may never end."""
    line, held = 1, 0

    def reading(size: int) -> bytes:
        nonlocal line, held
        piece = read(size)
        line += piece.count(b"\n")
        end = piece.rfind(b"\n") + 1
        held = len(piece) - end if end else held + len(piece)
        if held > longest:
            raise DataError(
                f"{shown}:{line}: the line has more than {longest:,} bytes. Split the row, "
                "or raise --max-line"
            )
        return piece

    return reading


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """Open a regular file or a stream for reading once. Raises StoreError for anything else."""
    if not is_stream(path):
        with files.open_regular(Path(path)) as file:
            yield file
        return
    with _descriptor(path) as fd, io.FileIO(fd, closefd=False) as raw:
        yield io.BufferedReader(raw)


def lines(file: io.BufferedReader, shown: str) -> Iterator[bytes]:
    """Yield the lines of a file. Raises DataError if a line is longer than 256 MiB.

    ``shown`` is the name of the file in error messages.
    """
    while line := file.readline(_LONGEST + 1):
        if len(line) > _LONGEST:
            raise DataError(
                f"{shown} has a line of more than {_LONGEST:,} bytes. Write each row on its own "
                "line"
            )
        yield line


@contextmanager
def _descriptor(path: str) -> Iterator[int]:
    if is_stdin(path):
        yield 0
        return
    with files.reporting("read", Path(path)):
        fd = files.system.open_stream(Path(path))
    try:
        yield fd
    finally:
        files.system.close(fd)
