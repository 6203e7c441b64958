"""The lines of one file of JSON Lines in order, each decoded by a type or refused with a reason.

For files of some rows, ``predict`` and ``nupa``; ``jsonl.py`` reads many rows as columns, in parts,
and says the same of a line that is none.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import pyarrow as pa

from numtok.data.reading.one_line import BadLine, read_line
from numtok.data.reading.streams import STDIN, is_stdin, lines, opened
from numtok.errors import DataError, StoreError, UsageError

_PACKED = {".gz": "gzip", ".zst": "zstd"}

T = TypeVar("T")


def json_lines(path: str, type: type[T], form: str = "") -> Iterator[tuple[str, bytes, T]]:
    """Where each line stands, for messages, the line, and what it holds; blank lines are left out.

    The file is plain, ``.gz`` or ``.zst``; ``-`` is standard input. Raises UsageError for one that
    is not there, DataError for one that cannot be read, and for a line that is too long, is no
    UTF-8, has a key twice or is not of the type; ``form`` is then what a line looks like.
    """
    decoder = msgspec.json.Decoder(type)
    shown = STDIN if is_stdin(path) else path
    try:
        with _unpacked(path) as file:
            for number, line in enumerate(lines(file, shown), 1):
                if line := line.strip():
                    where = f"{shown}:{number}"
                    yield where, line, _read(where, line, decoder, form)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise UsageError(f"{path}: there is no such file; check the path") from None
        raise DataError(str(error)) from error
    except OSError as error:  # of what is packed
        raise DataError(f"{shown} cannot be read: {' '.join(str(error).split())}") from error


@contextmanager
def _unpacked(path: str) -> Iterator[BinaryIO]:
    """The file, unpacked where its name says that it is packed."""
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder; name a file of JSONL, or - for standard input")
    packing = _PACKED.get(Path(path).suffix)
    with opened(path) as raw:
        if packing is None:
            yield raw
        else:
            unpacked: Any = pa.CompressedInputStream(pa.PythonFile(raw, "r"), packing)
            yield io.BufferedReader(unpacked)


def _read(where: str, line: bytes, decoder: "msgspec.json.Decoder[T]", form: str) -> T:
    try:
        return read_line(line, decoder, form)
    except BadLine as error:
        raise DataError(f"{where}: {error}") from None
