"""Safe reading of small TOML and JSON files that the user passes.

Such a file may be a pipe without a writer or an endless device, it may be deeply nested, or it may
contain numbers that are too large or not finite. Each of these problems becomes a one-line
UsageError.
"""

import json as library
import tomllib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from numtok import files
from numtok.errors import StoreError, UsageError, file_not_found
from numtok.stored_json import finite, levels

LARGEST = 4 << 20  # bytes; hand-written files have a few thousand
DEEPEST = 32  # levels of nested lists and tables
_BITS = 63  # of an integer, without its sign


def read(path: Path, shown: str, limit: int = LARGEST) -> bytes:
    """Return the content of a file. ``shown`` is the name of the file in error messages.

    Raises UsageError if the file is missing, is not a regular file, cannot be read, or is larger
    than ``limit`` bytes.
    """
    try:
        return files.read_bytes(path, limit)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise file_not_found(path, shown) from None
        reason = str(error).removeprefix(f"{path} ")
        separator = ": " if reason == str(error) else " "
        raise UsageError(f"{shown}{separator}{reason}") from error


def toml(content: bytes, shown: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse TOML. Numbers must be finite, and nesting must not exceed ``DEEPEST`` levels.

    ``parse_float`` converts the text of each number with a decimal point or an exponent. Raises
    UsageError if the content is invalid; ``shown`` is the name of the file in the message.
    """

    def parsed(text: str) -> Any:
        finite(text)
        return parse_float(text)

    try:
        document = tomllib.loads(content.decode("utf-8-sig"), parse_float=parsed)
    except ValueError as error:  # invalid TOML or UTF-8, or a number that is not finite
        # The parser's message may have several lines.
        raise UsageError(f"{shown} cannot be read: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise _too_deep(shown) from None
    _check(document, shown)
    return document


def json(content: bytes, shown: str) -> Any:
    """Parse JSON. Numbers must be finite, and nesting must not exceed ``DEEPEST`` levels.

    Raises UsageError if the content is invalid; ``shown`` is the name of the file in the message.
    """
    try:
        document = library.loads(content, parse_constant=finite, parse_float=finite)
    except ValueError as error:
        raise UsageError(f"{shown} is not JSON ({error})") from None
    except RecursionError:
        raise _too_deep(shown) from None
    _check(document, shown)
    return document


def _check(document: Any, shown: str) -> None:
    try:
        for value in chain.from_iterable(levels(document, DEEPEST)):
            if isinstance(value, int) and value.bit_length() > _BITS:
                raise UsageError(
                    f"{shown} cannot be read: integers must fit in {_BITS} bits (got one of "
                    f"{value.bit_length():,} bits)"
                )
    except ValueError:
        raise _too_deep(shown) from None


def _too_deep(shown: str) -> UsageError:
    return UsageError(
        f"{shown} is nested too deeply. Use at most {DEEPEST} levels of lists and tables"
    )
