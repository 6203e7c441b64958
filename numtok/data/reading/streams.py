"""What is named as a file and can be read only once: standard input, and pipes.

A shell writes ``/dev/fd/63`` for ``<(zcat x.gz)``, and that name says nothing of what is in it.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from numtok import files
from numtok.errors import DataError
from numtok.store.quota import Quota

STDIN = "standard input"
_IS_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_NAMELESS = ("/dev/fd/", "/proc/")
_LONGEST = 256 << 20  # bytes of a line


def is_stdin(path: str) -> bool:
    """Whether it is a name of standard input."""
    return path in _IS_STDIN


def is_stream(path: str) -> bool:
    """Whether it is standard input or a pipe."""
    return is_stdin(path) or Path(path).is_fifo()


def stem_of(path: str) -> str:
    """What a stream is called where a file is called by its name."""
    return "stdin" if is_stdin(path) or path.startswith(_NAMELESS) else Path(path).name


@dataclass(frozen=True)
class Spool:
    """Keeps streams as files, because inputs are read twice. ``folder`` makes a new folder."""

    folder: Callable[[], Path]
    quota: Quota

    def keep(self, path: str, ending: str) -> Path:
        """All that comes out of a stream, in a file that ends so.

        Raises UsageError where that is more than the quota allows, StoreError where it cannot be
        read or written.
        """
        folder = self.folder()
        kept = folder / f"stdin{ending}"
        shown = STDIN if is_stdin(path) else path
        with (
            _descriptor(path) as fd,
            files.Sink(kept) as sink,
            files.reporting("read", Path(shown)),
        ):
            self.quota.copy(shown, folder, lambda size: files.system.read(fd, size), sink.write)
        return kept


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """A regular file, or a stream, to be read once; StoreError for what is neither."""
    if not is_stream(path):
        with files.open_regular(Path(path)) as file:
            yield file
        return
    with _descriptor(path) as fd, io.FileIO(fd, closefd=False) as raw:
        yield io.BufferedReader(raw)


def lines(file: io.BufferedReader, shown: str) -> Iterator[bytes]:
    """Its lines; DataError for one that no memory may hold."""
    while line := file.readline(_LONGEST + 1):
        if len(line) > _LONGEST:
            raise DataError(
                f"{shown} has a line of more than {_LONGEST:,} bytes; write each row on a line of "
                "its own"
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
