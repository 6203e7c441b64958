"""JSON that numtok wrote to a disk, read back by a type that says what it may be.

Each kind of file is declared once, as a :class:`StoredJson` or :class:`StoredLines`, and read
through that alone. Nothing of it is believed: it must be a regular file, its size is looked at
before memory is taken, numbers are finite, texts are whole characters, and nothing is nested deeper
than can be walked. Whatever is wrong with it becomes one StoreError that names the file.
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
Value = Any  # of JSON; who walks through one has asked :func:`check_depth` before
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Scalar = str | int | float | bool | None
_DEEPEST = 32  # lists and objects in one another
_USUAL = 64 << 20  # bytes of a file
#: What to do: `verify` compares what has a checksum, the others are beside all checksums.
VERIFY = "`numtok verify` says which files are damaged"
REMAKE = "remove the artifact (`numtok rm --force`) and make it again"


class _Version(msgspec.Struct):
    """All that is sure of a file that another numtok wrote: one of the two."""

    format: int | None = None
    schema: int | None = None


@dataclass(frozen=True, kw_only=True)
class StoredJson(Generic[T]):
    """A kind of file in the folder of an artifact: one JSON value.

    limit
        Bytes; a larger one is not read.
    newest
        The version that this numtok reads and writes, of files that name theirs (``format`` or
        ``schema``).
    then
        What to do about a damaged one.
    any_text
        Whether texts may hold half characters, as paths do that are no UTF-8.
    """

    name: str
    kind: type[T]
    limit: int = _USUAL
    newest: int | None = None
    then: str = VERIFY
    any_text: bool = False

    def read(self, folder: Path) -> T:
        """That of an artifact; StoreError where it is damaged or of a newer version."""
        path = folder / self.name
        return self.of(files.read_bytes(path, self.limit), path)

    def of(self, content: bytes, path: Path) -> T:
        """Likewise, of bytes that were read from ``path``."""
        with reading(path, self.then):
            if self.newest is not None:
                self._check_version(content, path, self.newest)
            return decode(content, self.kind, self.any_text)

    def _check_version(self, content: bytes, path: Path, newest: int) -> None:
        version = decode(content, _Version, self.any_text)
        what = "schema" if version.format is None else "format"
        found = version.schema if version.format is None else version.format
        if found is None:
            raise ValueError("it does not say which version of such a file it is")
        if found > newest:
            raise StoreError(
                f"{path} has {what} {found}, this numtok knows up to {newest}; "
                "use the numtok that made it, or a newer one"
            )
        if found < 1:
            raise ValueError(f"there is no {what} {found}")
        if found < newest:
            raise StoreError(
                f"{path} has the former {what} {found}, this numtok reads {newest}; "
                "make the artifact again"
            )

    def write(self, folder: Path, value: T) -> None:
        """Write what :meth:`read` reads, so that people can read it too."""
        content = msgspec.json.format(msgspec.json.encode(value), indent=1)
        files.write_atomic(folder / self.name, content + b"\n")


@dataclass(frozen=True, kw_only=True)
class StoredLines(Generic[T]):
    """A kind of file with one JSON value on each line; the fields are those of
    :class:`StoredJson`."""

    name: str
    kind: type[T]
    limit: int = _USUAL
    then: str = VERIFY
    any_text: bool = False

    def read(self, folder: Path) -> list[T]:
        """Those of an artifact; StoreError where one is damaged."""
        path = folder / self.name
        return self.of(files.read_bytes(path, self.limit), path)

    def of(self, content: bytes, path: Path) -> list[T]:
        """Likewise, of bytes that were read from ``path``."""
        found = []
        for number, line in enumerate(content.splitlines(), 1):
            with reading(path, self.then, f"line {number}: "):
                found.append(decode(line, self.kind, self.any_text))
        return found


@contextmanager
def reading(path: Path, then: str = VERIFY, where: str = "") -> Iterator[None]:
    """Turn a ValueError over what a file says, ``where`` in it, into the StoreError that names
    it."""
    try:
        yield
    except ValueError as error:
        raise damaged(path, where + str(error), then) from error


def damaged(path: Path, why: str, then: str = VERIFY) -> StoreError:
    """The error for a file that is not what was written."""
    return StoreError(f"{path} is damaged: {why}; {then}")


def decode(data: bytes, kind: type[T], any_text: bool = False) -> T:
    """What JSON says, of a type that says what it may: of no other type, finite, of whole
    characters (unless ``any_text``), and no deeper than can be walked. Raises ValueError, which
    says what is wrong."""
    try:
        if any_text:
            return convert(loads(data), kind)
        text = data.decode()  # also what the type has no field for
        with _saying_why():
            return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None


def loads(data: bytes) -> Value:
    """Whatever JSON says, by Python's own reader, which knows half characters: finite, and no
    deeper than can be walked. Raises ValueError as :func:`decode`."""
    try:
        found = json.loads(data, parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    check_depth(found)
    return found


def convert(value: Any, kind: type[T]) -> T:
    """What was read from JSON already, as a type that says what it may be; raises as
    :func:`decode`."""
    with _saying_why():
        return msgspec.convert(value, kind)


def levels(value: Value, deepest: int) -> Iterator[list[Value]]:
    """The values of a JSON value level by level, itself first: what is deep enough would end a
    function that calls itself. ValueError below ``deepest`` lists and objects in one another."""
    level = [value]
    for _ in range(deepest + 1):
        yield level
        nested = [one for one in level if isinstance(one, (dict, list))]
        if not nested:
            return
        level = [
            inner for one in nested for inner in (one.values() if isinstance(one, dict) else one)
        ]
    raise ValueError("it is nested too deep")


def check_depth(value: Value) -> None:
    """ValueError for lists and objects that are nested beyond what settings are."""
    for _ in levels(value, _DEEPEST + 1):
        pass


@contextmanager
def _saying_why() -> Iterator[None]:
    try:
        yield
    # The last are of classes of settings, which say what is possible.
    except (msgspec.ValidationError, UsageError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a JSON number that float64 holds")
    return value
