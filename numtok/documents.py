"""The small files that a user names, TOML and JSON: read whole, and never believed before.

A file may be a pipe that nobody writes into, a device without end, a thousand lists in each other
or a number that no computation survives. All of that ends here, in one line, with exit code 2.
"""

import json as library
import math
import tomllib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from numtok import files
from numtok.errors import StoreError, UsageError
from numtok.stored_json import levels

LARGEST = 4 << 20  # bytes; what people write has some thousands
DEEPEST = 32  # lists and tables in each other
_BITS = 63  # of a whole number, beside its sign


def read(path: Path, shown: str, limit: int = LARGEST) -> bytes:
    """What is in a file; ``shown`` is how messages name it.

    Raises UsageError for one that is not there, is no regular file, cannot be read, or has more
    than ``limit`` bytes.
    """
    try:
        return files.read_bytes(path, limit)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise UsageError(f"{shown}: there is no such file; check the path") from None
        told = str(error).removeprefix(f"{path} ")
        between = ": " if told == str(error) else " "
        raise UsageError(f"{shown}{between}{told}") from error


def toml(content: bytes, shown: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tables of TOML, all of whose numbers are finite, no deeper than ``DEEPEST``.

    ``parse_float`` is given numbers with a point or an exponent as they are written. Raises
    UsageError.
    """

    def finite(text: str) -> Any:
        if not math.isfinite(float(text)):
            raise ValueError(f"{text} is no finite number")
        return parse_float(text)

    try:
        found = tomllib.loads(content.decode("utf-8-sig"), parse_float=finite)
    except ValueError as error:  # of TOML, of UTF-8, and as above
        # One line also where the parser's message has several.
        raise UsageError(f"{shown} cannot be read: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise _too_deep(shown) from None
    _check(found, shown)
    return found


def json(content: bytes, shown: str) -> Any:
    """The value of JSON, no deeper than ``DEEPEST``; UsageError."""
    try:
        found = library.loads(content, parse_constant=_refuse_constant)
    except ValueError as error:
        raise UsageError(f"{shown} is not JSON ({error})") from None
    except RecursionError:
        raise _too_deep(shown) from None
    _check(found, shown)
    return found


def _check(found: Any, shown: str) -> None:
    try:
        for one in chain.from_iterable(levels(found, DEEPEST)):
            if isinstance(one, int) and one.bit_length() > _BITS:
                raise UsageError(
                    f"{shown} cannot be read: a whole number of {one.bit_length():,} bits; {_BITS} "
                    "are allowed"
                )
    except ValueError:
        raise _too_deep(shown) from None


def _too_deep(shown: str) -> UsageError:
    return UsageError(
        f"{shown} is nested too deeply; at most {DEEPEST} lists and tables may be in each other"
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
