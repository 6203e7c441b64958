"""Read, check and fill templates: texts with fields for numbers, in TOML files.

``[NUMA]`` is a number. ``[NUMA egg/eggs]`` is a word that depends on the number: the first form for
1 and -1, the second for all others. ``[NUMA a/an]`` is the article before the number. A text
contains each of its numbers exactly once, and no others.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok import documents
from numtok.data.reading.validation_reasons import reworded
from numtok.data.tasks.base import GivenFile
from numtok.errors import UsageError, unknown
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan

_OWN = Path(__file__).parent / "templates"
_LARGEST = 16 << 20  # bytes
_FIELD = re.compile(r"\[([^\[\]]*)\]")
_PROBES = (80, 1)  # numbers that select either word of every field


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """Base class for the tables of a template file. Their ``name`` appears in groups of rows."""

    name: str


T = TypeVar("T", bound=Entry)


class _Number(NamedTuple):
    field: str


class _Word(NamedTuple):
    """One of two words, selected by a number."""

    field: str
    singular: str
    plural: str


@dataclass(frozen=True)
class Pattern:
    """A text with fields for numbers, and for words that depend on the numbers.

    >>> pattern = Pattern.parse("[N A/An] [N] mm [N nail/nails]", ["N"])
    >>> pattern.fill({"N": np.array([1, 18])})
    ['A 1 mm nail', 'An 18 mm nails']
    """

    parts: tuple[str | _Number | _Word, ...]

    @classmethod
    def parse(cls, text: str, fields: Sequence[str]) -> "Pattern":
        """Parse a text that contains each of ``fields``. Raises ValueError if it is invalid."""
        parts: list[str | _Number | _Word] = []
        for index, piece in enumerate(_FIELD.split(text)):
            if index % 2 == 0:
                if "[" in piece or "]" in piece:
                    raise ValueError(f"unbalanced bracket in {piece!r}")
                parts += [piece] if piece else []
                continue
            field, space, words = piece.partition(" ")
            if field not in fields:
                names = ", ".join(f"[{name}]" for name in fields)
                raise ValueError(f"unknown field [{piece}]. Known: {names}")
            singular, _, plural = words.partition("/")
            if space and not (singular and plural and "/" not in plural):
                raise ValueError(f"[{piece}] must have two words, such as [{field} egg/eggs]")
            parts.append(_Word(field, singular, plural) if space else _Number(field))
        for field in fields:
            if (count := parts.count(_Number(field))) != 1:
                raise ValueError(f"the field [{field}] must appear once (got {count} times)")
        pattern = cls(tuple(parts))
        pattern._check_numbers(fields)
        return pattern

    def _check_numbers(self, fields: Sequence[str]) -> None:
        """Check that exactly the fields are read as numbers."""
        order = [part.field for part in self.parts if isinstance(part, _Number)]
        for probe in _PROBES:
            (text,) = self.fill({field: np.array([probe]) for field in fields})
            data = np.frombuffer(text.encode(), np.uint8)
            starts, ends, _ = scan(data, np.array([0, len(data)], np.int32), NumeralPolicy())
            numbers = [
                data[start:end].tobytes().decode() for start, end in zip(starts, ends, strict=True)
            ]
            if extra := [number for number in numbers if number != str(probe)]:
                raise ValueError(f"the text must not contain the number {extra[0]!r}. Spell it out")
            if len(numbers) != len(order):
                raise ValueError(
                    f"in {text!r}, only {len(numbers)} of {len(order)} fields are read as numbers. "
                    "Separate fields from letters, points and digits"
                )

    def fill(self, numbers: Mapping[str, NDArray[np.int64]]) -> list[str]:
        """Return the texts [n] in which each field is filled with its numbers [n]."""
        written = {field: list(map(str, values.tolist())) for field, values in numbers.items()}
        columns: list[Iterable[str]] = []
        for part in self.parts:
            if isinstance(part, str):
                columns.append(repeat(part))
            elif isinstance(part, _Number):
                columns.append(written[part.field])
            else:
                use_second = _is_vowel if part.plural.lower() == "an" else _is_several
                words = (part.singular, part.plural)
                columns.append([words[use_second(number)] for number in written[part.field]])
        return list(map("".join, zip(*columns, strict=False)))


def _is_several(number: str) -> bool:
    return number not in ("1", "-1")


def _is_vowel(number: str) -> bool:
    """Return whether a number starts with a vowel sound: eight, eighty, eleven, 18 thousand."""
    return number[0] == "8" or (number[:2] in ("11", "18") and len(number) % 3 == 2)


def fill_each(
    patterns: Sequence[Pattern], which: NDArray[np.int64], numbers: Mapping[str, NDArray[np.int64]]
) -> list[str]:
    """Fill a pattern for each row [n], given its index ``which`` [n] and numbers [n] by field."""
    texts = np.empty(len(which), object)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
        if len(rows):
            texts[rows] = pattern.fill({field: column[rows] for field, column in numbers.items()})
    return list(texts)


class Templates:
    """A file of templates, numtok's own or one given by the user, read once.

    The entries of the file are tables of TOML arrays. Raises UsageError if the file is invalid; the
    message names the file and the entry.
    """

    def __init__(self, path: str, own: str) -> None:
        self.where = path or own
        file = Path(path) if path else _OWN / own
        content = documents.read(file, f"--templates {path}", _LARGEST)
        self._tables = documents.toml(content, self.where)
        self.given = GivenFile(path, hashlib.sha256(content).hexdigest(), len(content))

    def entries(self, name: str, kind: type[T], more: Sequence[str] = ()) -> dict[str, T]:
        """Return the tables ``[[name]]``, keyed by their description in messages.

        Raises UsageError if the file contains none of these tables or any table that is not listed
        in ``more``, if a table is invalid, or if two tables have the same ``name`` member.
        """
        for key in self._tables:
            if key not in (name, *more):
                raise unknown(f"key in {self.where}:", key, (name, *more))
        tables = self._tables.get(name)
        if not isinstance(tables, list) or not tables:
            raise UsageError(f"{self.where} must have at least one [[{name}]]")
        entries: dict[str, T] = {}
        for number, table in enumerate(tables, 1):
            label = table.get("name") if isinstance(table, dict) else None
            entry = f"{name} {number}" + (f" ({label})" if label else "")
            try:
                entries[entry] = msgspec.convert(table, kind)
            except msgspec.ValidationError as error:
                raise self.wrong(entry, reworded(str(error)).replace("`", "'")) from None
        names = [value.name for value in entries.values()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(
                f"{self.where}: the name {twice[0]!r} of {name} is used twice. Choose unique names"
            )
        return entries

    def pattern(self, entry: str, text: str, fields: Sequence[str]) -> Pattern:
        """Parse the pattern of an entry's text. Raises UsageError if it is invalid."""
        try:
            return Pattern.parse(text, fields)
        except ValueError as error:
            raise self.wrong(entry, str(error)) from None

    def wrong(self, entry: str, what: str) -> UsageError:
        """Return an error about an entry of the file, with the message ``what``."""
        return UsageError(f"{self.where}: {entry}: {what}")

    def checked_range(self, entry: str, ends: tuple[int, int], least: int, most: int) -> None:
        """Raise UsageError if a range is empty or extends beyond ``least`` to ``most``."""
        low, high = ends
        if not least <= low <= high <= most:
            raise self.wrong(
                entry,
                f"the range must be two increasing whole numbers from {least} to {most:,} (got "
                f"[{low}, {high}])",
            )
