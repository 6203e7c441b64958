"""Decode a JSON Lines file line by line. Invalid lines are rejected with a reason and advice.

This module reads the small files of ``numtok predict`` and ``numtok score``. ``jsonl.py`` reads
large files as columns, in parts. Both use :func:`read_line`, so they reject invalid lines for the
same reasons.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec
import pyarrow as pa

from numtok.data.reading.first_bytes import FIRST_BYTES, MARK, check_utf8, format_of
from numtok.data.reading.streams import STDIN, is_stdin, lines, opened
from numtok.data.reading.validation_reasons import reworded, validation_reason
from numtok.errors import DataError, StoreError, UsageError, file_not_found

_TABLES = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet"}  # formats that users pass by mistake


class KeyTwice(ValueError):
    """Raised if a JSON object contains a duplicate key."""


class ConstantFound(ValueError):
    """Raised if JSON contains NaN, Infinity or -Infinity. The message is the constant."""


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object as a dictionary. Raises KeyTwice for a duplicate key.

    Pass this function to ``json.loads`` as ``object_pairs_hook``.

    >>> refuse_twice([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    unique = dict(pairs)
    if len(unique) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise KeyTwice(f"the key {twice!r} appears twice")
    return unique


def refuse_constant(name: str) -> NoReturn:
    """Raise ConstantFound.

    Pass this function to ``json.loads`` as ``parse_constant`` to reject NaN and Infinity.
    """
    raise ConstantFound(name)


def check_characters(written: str, value: Any) -> None:
    """Raise ValueError if a value contains a string with a lone surrogate.

    ``written`` is the JSON that the value was parsed from.
    """
    if "\\ud" in written or "\\uD" in written:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                r"a string has half a surrogate pair (\ud800 to \udfff), which is not a character"
            ) from None


#: Exceptions that decoders raise for a line that is not a row.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound=msgspec.Struct)


class LineDecoder(Protocol[T_co]):
    """Protocol for decoders of one line of JSON, such as ``msgspec.json.Decoder``.

    ``decode`` raises one of the exceptions in :data:`UNREADABLE` if the line is invalid.
    """

    def decode(self, line: bytes, /) -> T_co:
        """Return the decoded value of a line."""


def row_decoder(type: type[S], text_field: str) -> LineDecoder[S]:
    """Return a decoder of rows that reads the text from the field ``text_field``.

    ``type`` is the struct of a row, with a field ``text``. The name ``doc.body`` refers either to a
    field ``doc.body``, or to the field ``body`` of the object in ``doc``. Raises UsageError if
    ``text_field`` is empty or the name of another field of ``type``.
    """
    if text_field == "text":
        return msgspec.json.Decoder(type)
    names = [name for name in type.__struct_fields__ if name != "text"]
    if text_field in names or not text_field:
        raise UsageError(
            f"--text-field {text_field!r} must not be empty or a field with another meaning "
            f"({', '.join(names)}). Name the field that holds the text"
        )
    path = text_field.split(".")
    # Declared again, because renaming does not affect the fields of a base class.
    kind, default = (
        (str | msgspec.UnsetType, msgspec.UNSET) if path[1:] else (str, msgspec.NODEFAULT)
    )
    text = ("text", kind, msgspec.field(name=text_field, default=default))
    rows: LineDecoder[Any] = msgspec.json.Decoder(
        msgspec.defstruct("Row", [text], bases=(type,), kw_only=True)
    )
    return _NestedText(rows, path) if path[1:] else rows


class _NestedText:
    """Decodes rows whose text is in a nested field, given by its path."""

    def __init__(self, rows: LineDecoder[Any], path: Sequence[str]) -> None:
        kind: Any = str
        for name in reversed(path):
            kind = msgspec.defstruct("Level", [("inner", kind, msgspec.field(name=name))])
        self._rows, self._texts, self._levels = rows, msgspec.json.Decoder(kind), len(path)

    def decode(self, line: bytes) -> Any:
        row = self._rows.decode(line)
        if row.text is msgspec.UNSET:
            text = self._texts.decode(line)
            for _ in range(self._levels):
                text = text.inner
            row = msgspec.structs.replace(row, text=text)
        return row


def json_lines(
    path: str,
    decoder: LineDecoder[T],
    form: str = "",
    *,
    refused: Callable[[str], None] | None = None,
) -> Iterator[tuple[str, bytes, T]]:
    """Yield the location (``FILE:LINE``), bytes and decoded value of each nonblank line.

    The file is plain or compressed with gzip or zstd; ``-`` is standard input. ``form`` describes a
    valid line for error messages. Raises UsageError if the file is missing, and DataError if the
    file is unreadable or a line is too long, is not UTF-8, contains a duplicate key or cannot be
    decoded, unless ``refused`` is given: it is called with the location and the reason instead.
    """
    shown = STDIN if is_stdin(path) else path
    with _unpacked(path, shown) as file:
        for number, line in enumerate(lines(file, shown), 1):
            if number == 1:
                check_utf8(line, shown)
                line = line.removeprefix(MARK)
            if not (line := line.strip()):
                continue
            where = f"{shown}:{number}"
            try:
                value = read_line(line, decoder, form)
            except BadLine as error:
                if refused is None:
                    raise DataError(f"{where}: {error}") from None
                refused(f"{where}: {error}")
            else:
                yield where, line, value


@contextmanager
def _unpacked(path: str, shown: str) -> Iterator[io.BufferedReader]:
    """Open a file and decompress it if necessary. Errors from opening and reading it become
    UsageErrors and DataErrors."""
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder. Name a JSONL file, or - for standard input")
    try:
        with opened(path) as raw:
            packing = format_of(raw.peek(FIRST_BYTES), Path(path).suffix[1:])
            if table := _TABLES.get(packing):
                raise UsageError(
                    f"{shown} is {table}; it must be JSON Lines. Convert it, for example with "
                    "pandas: frame.to_json('rows.jsonl', orient='records', lines=True)"
                )
            if packing in ("gzip", "zstd"):
                unpacked: Any = pa.CompressedInputStream(pa.PythonFile(raw, "r"), packing)
                yield io.BufferedReader(unpacked)
            else:
                yield raw
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise file_not_found(path) from None
        raise DataError(str(error)) from error
    except OSError as error:  # from decompression
        raise DataError(f"{shown} cannot be read: {' '.join(str(error).split())}") from error


class BadLine(ValueError):
    """Raised if a line is of an unexpected type, is not UTF-8 or contains a duplicate key."""


def read_line(line: bytes, decoder: LineDecoder[T], form: str = "", suspicious: bool = True) -> T:
    """Decode a line. Raises BadLine if it is invalid; the message gives the reason.

    form
        Description of a valid line, for the message.
    suspicious
        False if the line is known to be UTF-8 with distinct keys. If true, this is checked, because
        msgspec does not detect all violations.
    """
    try:
        value = decoder.decode(line)
        if suspicious:
            # Numbers stay strings, because Python refuses integers of more than 4300 digits.
            json.loads(
                line.decode(), object_pairs_hook=refuse_twice, parse_int=str, parse_float=str
            )
        return value
    except KeyTwice as error:
        reason = f"{error}. Write each key once"
    except UNREADABLE as error:
        own = form and isinstance(error, msgspec.ValidationError)
        reason = f"{reworded(str(error))}. A line is {form}" if own else _reason_of(line, error)
    raise BadLine(reason)


def _reason_of(line: bytes, error: Exception) -> str:
    """Explain why a line is not a row and how to fix it."""
    try:
        text = line.decode()
    except UnicodeDecodeError as broken:
        return (
            f"invalid UTF-8 at byte {broken.start} of the line "
            f"(0x{line[broken.start]:02x}). Write the file as UTF-8"
        )
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply. Leave out the nested field"
    if isinstance(error, msgspec.ValidationError):
        return validation_reason(str(error))
    if text.startswith("\ufeff"):
        return "the line begins with a byte order mark. Write the file as UTF-8 without one"
    try:
        json.loads(text, parse_constant=refuse_constant, parse_int=str, parse_float=str)
    except ConstantFound as constant:
        return f"{constant} is not JSON. Write null or a string"
    except (ValueError, RecursionError):
        if "truncated" in str(error):
            return (
                "the JSON object does not end on this line. "
                "Write each object on one line: `jq -c .`"
            )
        return f"{error}. Each line must be one JSON object"
    return (
        r"a string has half a surrogate pair (\ud800 to \udfff), which is not a character. "
        r"Write both halves, or \ufffd"
    )
