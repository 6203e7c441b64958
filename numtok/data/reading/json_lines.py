"""The lines of one file of JSON Lines in order, each decoded by a type or refused with a reason, in
words that say what to do.

For files of some rows, ``predict`` and ``nupa``; ``jsonl.py`` reads many rows as columns, in parts,
and says the same of a line that is none, by :func:`read_line`.
"""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import pyarrow as pa

from numtok.data.reading.streams import STDIN, is_stdin, lines, opened
from numtok.data.reading.strict_json import ConstantFound, KeyTwice, refuse_constant, refuse_twice
from numtok.errors import DataError, StoreError, UsageError

_PACKED = {".gz": "gzip", ".zst": "zstd"}

#: What decoding raises for a line that is no row.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

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
                    try:
                        found = read_line(line, decoder, form)
                    except BadLine as error:
                        raise DataError(f"{where}: {error}") from None
                    yield where, line, found
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


class BadLine(ValueError):
    """A line that is not of the type, is no UTF-8 or has a key twice."""


def read_line(
    line: bytes, decoder: "msgspec.json.Decoder[T]", form: str = "", suspicious: bool = True
) -> T:
    """What a line holds; raises BadLine with the reason. ``form`` is what a line looks like.

    Of a line that is not suspicious it is known that it is UTF-8 and that its keys differ, which
    msgspec does not look at everywhere.
    """
    try:
        found = decoder.decode(line)
        if suspicious:
            # Numbers stay strings, because Python refuses integers of more than 4300 digits.
            json.loads(
                line.decode(), object_pairs_hook=refuse_twice, parse_int=str, parse_float=str
            )
        return found
    except KeyTwice as error:
        reason = f"{error}; each key may be there once"
    except UNREADABLE as error:
        own = form and isinstance(error, msgspec.ValidationError)
        reason = f"{error}; a line is {form}" if own else _reason_of(line, error)
    raise BadLine(reason)


def _reason_of(line: bytes, error: Exception) -> str:
    """What is wrong with a line that is no row, in words that say what to do."""
    for magic, name in (
        (b"\x1f\x8b", "gzip (.jsonl.gz)"),
        (b"\x28\xb5\x2f\xfd", "zstd (.jsonl.zst)"),
    ):
        if line.startswith(magic):
            return f"this looks like {name}; give the file that ending, or unpack it first"
    try:
        text = line.decode()
    except UnicodeDecodeError as broken:
        return (
            f"invalid UTF-8 at byte {broken.start} of the line "
            f"(0x{line[broken.start]:02x}); write the file as UTF-8"
        )
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be read; leave out the field with the nesting"
    if isinstance(error, msgspec.ValidationError):
        return validation_reason(str(error))
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark; write the file as UTF-8 without one"
    try:
        json.loads(text, parse_constant=refuse_constant, parse_int=str, parse_float=str)
    except ConstantFound as constant:
        return f"{constant} is not JSON; write null, or a string"
    except (ValueError, RecursionError):
        if "truncated" in str(error):
            return "the JSON object goes on after the line; each line is one (jq -c . makes it so)"
        return f"{error}; each line is one JSON object"
    return (
        r"a string has half a surrogate pair (\ud800 to \udfff), which is no character; "
        r"write the other half, or \ufffd"
    )


def validation_reason(message: str) -> str:
    """What msgspec says about JSON that is no row, and what to do about it.

    >>> validation_reason("Object missing required field `text`")
    'Object missing required field `text`; name the field that holds the text by --text-field'
    """
    if "missing required field" in message:
        return f"{message}; name the field that holds the text by --text-field"
    if message.startswith("Expected `object`,") and " - at " not in message:
        return f"{message}; each line is one JSON object (jq -c '.[]' makes it so from an array)"
    if message.startswith("Expected `str`,"):
        return f"{message}; it must be a string"
    return message
