"""Reads JSON files that numtok stored, and checks them against a declared type.

Each kind of file is declared once, as a :class:`StoredJson` or :class:`StoredLines`, and is read
only through that object. No file is trusted: it must be a regular file, its size is checked
before memory is allocated, numbers must be finite, text must be valid Unicode, and the nesting
depth is limited. Any problem becomes one StoreError that names the file.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from numtok import files
from numtok.errors import StoreError, UsageError

T = TypeVar("T")
Value = Any  # JSON; call :func:`check_depth` before walking through it
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Scalar = str | int | float | bool | None
_DEEPEST = 32  # nested lists and objects
_USUAL = 64 << 20  # default size limit of a file, bytes
#: Advice on damaged files: `verify` checks files that have a checksum; others must be rebuilt.
VERIFY = "List damaged files with `numtok verify`"
REMAKE = "Remove the artifact (`numtok rm --force`) and make it again"


class _Version(msgspec.Struct):
    """Version in a file that another numtok wrote; one of the two fields is set."""

    format: int | None = None
    schema: int | None = None


@dataclass(frozen=True, kw_only=True)
class StoredJson(Generic[T]):
    """Declaration of a kind of file, in an artifact's folder, that contains one JSON value.

    name, kind
        File name, and type of the value.
    limit
        Maximum size in bytes; larger files are rejected.
    newest
        Version (``format`` or ``schema``) that this numtok reads and writes; None if the file has
        no version.
    then
        Advice on a damaged file, printed in the error.
    any_text
        True if strings may contain lone surrogates, which occur in paths that are not valid UTF-8.
    """

    name: str
    kind: type[T]
    limit: int = _USUAL
    newest: int | None = None
    then: str = VERIFY
    any_text: bool = False

    def read(self, folder: Path) -> T:
        """Read the file in an artifact's folder. Raises StoreError if it is damaged or has another
        version."""
        path = folder / self.name
        return self.of(files.read_bytes(path, self.limit), path)

    def of(self, content: bytes, path: Path) -> T:
        """Decode the content of the file at ``path``. Raises StoreError if it is damaged or has
        another version."""
        with reading(path, self.then):
            if self.newest is not None:
                self._check_version(content, path, self.newest)
            return decode(content, self.kind, self.any_text)

    def _check_version(self, content: bytes, path: Path, newest: int) -> None:
        version = decode(content, _Version, self.any_text)
        what = "schema" if version.format is None else "format"
        number = version.schema if version.format is None else version.format
        if number is None:
            raise ValueError("it has no version (format or schema)")
        if number > newest:
            raise StoreError(
                f"{path} has {what} {number}; this numtok reads up to {newest}. "
                "Use the numtok that wrote it, or a newer one"
            )
        if number < 1:
            raise ValueError(f"{what} {number} does not exist")
        if number < newest:
            raise StoreError(
                f"{path} has the old {what} {number}; this numtok reads {newest}. "
                "Make the artifact again"
            )

    def write(self, folder: Path, value: T) -> None:
        """Write a value to the file in an artifact's folder, as indented JSON."""
        content = msgspec.json.format(msgspec.json.encode(value), indent=1)
        files.write_atomic(folder / self.name, content + b"\n")


@dataclass(frozen=True, kw_only=True)
class StoredLines(Generic[T]):
    """Declaration of a kind of file with one JSON value per line. The fields have the same meaning
    as in :class:`StoredJson`."""

    name: str
    kind: type[T]
    limit: int = _USUAL
    then: str = VERIFY
    any_text: bool = False

    def read(self, folder: Path) -> list[T]:
        """Read all values from the file in an artifact's folder. Raises StoreError if it is
        damaged."""
        path = folder / self.name
        return self.of(files.read_bytes(path, self.limit), path)

    def of(self, content: bytes, path: Path) -> list[T]:
        """Decode the lines of the file at ``path``. Raises StoreError if one of them is damaged."""
        values = []
        for number, line in enumerate(content.splitlines(), 1):
            with reading(path, self.then, f"line {number}: "):
                values.append(decode(line, self.kind, self.any_text))
        return values


@contextmanager
def reading(path: Path, then: str = VERIFY, where: str = "") -> Iterator[None]:
    """Turn a ValueError that the block raises about the content of a file into a StoreError that
    names the file.

    ``where`` is the location in the file, and ``then`` is advice for the user.
    """
    try:
        yield
    except ValueError as error:
        raise damaged(path, where + str(error), then) from error


def damaged(path: Path, why: str, then: str = VERIFY) -> StoreError:
    """Return the StoreError for a file whose content is not what numtok wrote; ``why`` is the
    reason, and ``then`` is advice."""
    return StoreError(f"{path} is damaged: {why}. {then}")


def decode(data: bytes, kind: type[T], any_text: bool = False) -> T:
    """Decode JSON as a value of the given type.

    Numbers must be finite, nesting is limited, and text must be valid Unicode unless ``any_text``
    is true. Raises ValueError with the reason.
    """
    try:
        if any_text:
            return convert(loads(data), kind)
        text = data.decode()  # also checks fields that the type does not have
        with _with_reason():
            return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None


def loads(data: bytes) -> Value:
    """Decode any JSON with Python's own parser, which accepts lone surrogates.

    Numbers must be finite and nesting is limited. Raises ValueError with the reason.
    """
    try:
        value = json.loads(data, parse_constant=finite, parse_float=finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    check_depth(value)
    return value


def convert(value: Any, kind: type[T]) -> T:
    """Convert decoded JSON to a value of the given type. Raises ValueError with the reason."""
    with _with_reason():
        return msgspec.convert(value, kind)


def levels(value: Value, deepest: int) -> Iterator[list[Value]]:
    """Yield the values nested in a JSON value, level by level, starting with the value itself.

    The traversal is iterative, because deep nesting would exceed the recursion limit. Raises
    ValueError if lists and objects are nested deeper than ``deepest``.
    """
    level = [value]
    for _ in range(deepest + 1):
        yield level
        nested = [item for item in level if isinstance(item, (dict, list))]
        if not nested:
            return
        level = [
            inner
            for item in nested
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    raise ValueError("it is nested too deeply")


def check_depth(value: Value) -> None:
    """Raise ValueError if lists and objects are nested too deeply."""
    for _ in levels(value, _DEEPEST + 1):
        pass


@contextmanager
def _with_reason() -> Iterator[None]:
    try:
        yield
    # UsageError comes from classes of settings.
    except (msgspec.ValidationError, UsageError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def finite(text: str) -> float:
    """Return the value of a number. Raises ValueError if float64 cannot hold it."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a finite float64 number")
    return value
