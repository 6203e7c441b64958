"""The lines of one file of JSON Lines in order, each decoded by a type or refused with a reason, in
words that say what to do.

For files of some rows, ``predict`` and ``nupa``; ``jsonl.py`` reads many rows as columns, in parts,
and says the same of a line that is none, by :func:`read_line`.
"""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec
import pyarrow as pa

from numtok.data.reading.first_bytes import LOOK, MARK, check_utf8, format_of
from numtok.data.reading.streams import STDIN, is_stdin, lines, opened
from numtok.errors import DataError, StoreError, UsageError


class KeyTwice(ValueError):
    """An object has a key twice."""


class ConstantFound(ValueError):
    """NaN, Infinity or -Infinity, which the message is."""


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """``object_pairs_hook`` that raises KeyTwice.

    >>> refuse_twice([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise KeyTwice(f"the key {twice!r} is there twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    """``parse_constant`` that raises ConstantFound."""
    raise ConstantFound(name)


def check_characters(written: str, value: Any) -> None:
    """ValueError where a string of a value, written so as JSON, has half a surrogate pair."""
    if "\\ud" in written or "\\uD" in written:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                r"a string has half a surrogate pair (\ud800 to \udfff), which is no character"
            ) from None


#: What decoding raises for a line that is no row.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound=msgspec.Struct)


class LineDecoder(Protocol[T_co]):
    """Decodes a line of JSON; raises one of :data:`UNREADABLE`."""

    def decode(self, line: bytes, /) -> T_co:
        """Return what the line holds."""


def row_decoder(type: type[S], text_field: str) -> LineDecoder[S]:
    """Return the decoder of rows, structs with a string ``text``, that have it in another field.

    ``doc.body`` is a field of that name, or the field ``body`` of the object in ``doc``. Raises
    UsageError for an empty name and for that of another field of ``type``.
    """
    if text_field == "text":
        return msgspec.json.Decoder(type)
    names = [name for name in type.__struct_fields__ if name != "text"]
    if text_field in names or not text_field:
        raise UsageError(
            f"--text-field {text_field!r} cannot hold the text: it is empty or has another meaning "
            f"({', '.join(names)}). Name the field that holds the text"
        )
    path = text_field.split(".")
    # Declared again, because renaming does not reach the fields of a base.
    kind, default = (
        (str | msgspec.UnsetType, msgspec.UNSET) if path[1:] else (str, msgspec.NODEFAULT)
    )
    text = ("text", kind, msgspec.field(name=text_field, default=default))
    rows: LineDecoder[Any] = msgspec.json.Decoder(
        msgspec.defstruct("Row", [text], bases=(type,), kw_only=True)
    )
    return _NestedText(rows, path) if path[1:] else rows


class _NestedText:
    """Decodes rows whose text is in the last of some fields, each within the one before it."""

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
    path: str, decoder: LineDecoder[T], form: str = ""
) -> Iterator[tuple[str, bytes, T]]:
    """Where each line stands, for messages, the line, and what it holds; blank lines are left out.

    The file is plain or packed by gzip or zstd; ``-`` is standard input. Raises UsageError for a
    missing file, and DataError for an unreadable one or a line that is too long, is not UTF-8, has
    a key twice or cannot be decoded. ``form`` describes a line for that message.
    """
    shown = STDIN if is_stdin(path) else path
    try:
        with _unpacked(path) as file:
            for number, line in enumerate(lines(file, shown), 1):
                if number == 1:
                    check_utf8(line, shown)
                    line = line.removeprefix(MARK)
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
def _unpacked(path: str) -> Iterator[io.BufferedReader]:
    """The file, unpacked if it is packed."""
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder; name a file of JSONL, or - for standard input")
    with opened(path) as raw:
        packing = format_of(raw.peek(LOOK), "jsonl")
        if packing in ("gzip", "zstd"):
            unpacked: Any = pa.CompressedInputStream(pa.PythonFile(raw, "r"), packing)
            yield io.BufferedReader(unpacked)
        else:
            yield raw


class BadLine(ValueError):
    """A line that is not of the type, is no UTF-8 or has a key twice."""


def read_line(line: bytes, decoder: LineDecoder[T], form: str = "", suspicious: bool = True) -> T:
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
