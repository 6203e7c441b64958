"""Texts with fields for numbers, kept in TOML files: read, checked, filled in.

``[NUMA]`` is a number, ``[NUMA egg/eggs]`` the word that goes with it: the first for 1 and -1, the
second for others; or the article, where the first is ``a`` and the second ``an``. A text has each
of its numbers once, and no others.
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
from numtok.data.tasks.base import GivenFile
from numtok.errors import UsageError, unknown
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan

_OWN = Path(__file__).parent / "templates"
_LARGEST = 16 << 20  # bytes
_FIELD = re.compile(r"\[([^\[\]]*)\]")
_PROBES = (80, 1)  # numbers with which both words of every field are written


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A table of a file; ``name`` is what groups are called by."""

    name: str


T = TypeVar("T", bound=Entry)


class _Number(NamedTuple):
    field: str


class _Word(NamedTuple):
    """One of two words, by a number."""

    field: str
    one: str
    many: str


@dataclass(frozen=True)
class Pattern:
    """A text with fields.

    >>> pattern = Pattern.parse("[N A/An] [N] mm [N nail/nails]", ["N"])
    >>> pattern.fill({"N": np.array([1, 18])})
    ['A 1 mm nail', 'An 18 mm nails']
    """

    parts: tuple[str | _Number | _Word, ...]

    @classmethod
    def parse(cls, text: str, fields: Sequence[str]) -> "Pattern":
        """The pattern of a text that has each of these fields; ValueError says what is wrong."""
        parts: list[str | _Number | _Word] = []
        for place, piece in enumerate(_FIELD.split(text)):
            if place % 2 == 0:
                if "[" in piece or "]" in piece:
                    raise ValueError(f"a bracket is not closed, or not opened, in {piece!r}")
                parts += [piece] if piece else []
                continue
            field, space, words = piece.partition(" ")
            if field not in fields:
                known = ", ".join(f"[{name}]" for name in fields)
                raise ValueError(f"unknown field [{piece}]; known: {known}")
            one, _, many = words.partition("/")
            if space and not (one and many and "/" not in many):
                raise ValueError(f"[{piece}] is not two words, written [{field} egg/eggs]")
            parts.append(_Word(field, one, many) if space else _Number(field))
        for field in fields:
            if (count := parts.count(_Number(field))) != 1:
                raise ValueError(f"the field [{field}] is there {count} times, and must be once")
        made = cls(tuple(parts))
        made._check_numbers(fields)
        return made

    def _check_numbers(self, fields: Sequence[str]) -> None:
        """What is read as a number is the fields, and nothing else."""
        order = [part.field for part in self.parts if isinstance(part, _Number)]
        for probe in _PROBES:
            (text,) = self.fill({field: np.array([probe]) for field in fields})
            data = np.frombuffer(text.encode(), np.uint8)
            starts, ends, _ = scan(data, np.array([0, len(data)], np.int32), NumeralPolicy())
            found = [
                data[start:end].tobytes().decode() for start, end in zip(starts, ends, strict=True)
            ]
            if others := [number for number in found if number != str(probe)]:
                raise ValueError(
                    f"{others[0]!r} in it would be read as a number of its own; write it as a word"
                )
            if len(found) != len(order):
                raise ValueError(
                    f"of {text!r} {len(found)} of {len(order)} fields would be read as a number; "
                    "keep letters, points and other digits away from the fields"
                )

    def fill(self, numbers: Mapping[str, NDArray[np.int64]]) -> list[str]:
        """The texts with the numbers [n] of each field."""
        written = {field: list(map(str, values.tolist())) for field, values in numbers.items()}
        columns: list[Iterable[str]] = []
        for part in self.parts:
            if isinstance(part, str):
                columns.append(repeat(part))
            elif isinstance(part, _Number):
                columns.append(written[part.field])
            else:
                is_first = _is_vowel if part.many.lower() == "an" else _is_several
                words = (part.one, part.many)
                columns.append([words[is_first(number)] for number in written[part.field]])
        return list(map("".join, zip(*columns, strict=False)))


def _is_several(number: str) -> bool:
    return number not in ("1", "-1")


def _is_vowel(number: str) -> bool:
    """Whether it begins with a vowel when it is said: eight, eighty, eleven, eighteen thousand."""
    return number[0] == "8" or (number[:2] in ("11", "18") and len(number) % 3 == 2)


def fill_each(
    patterns: Sequence[Pattern], which: NDArray[np.int64], numbers: Mapping[str, NDArray[np.int64]]
) -> list[str]:
    """The text of each row [n], by the place of its pattern [n] and its numbers [n]."""
    texts = np.empty(len(which), object)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
        if len(rows):
            texts[rows] = pattern.fill({field: of[rows] for field, of in numbers.items()})
    return list(texts)


class Templates:
    """A file of templates, read once: of numtok itself, or one that a user names.

    Its entries are tables of TOML arrays. Raises UsageError for all that is wrong, with the file
    and the entry.
    """

    def __init__(self, path: str, own: str) -> None:
        self.where = path or own
        place = Path(path) if path else _OWN / own
        content = documents.read(place, f"--templates {path}", _LARGEST)
        self._tables = documents.toml(content, self.where)
        self.given = GivenFile(path, hashlib.sha256(content).hexdigest(), len(content))

    def entries(self, name: str, kind: type[T], others: Sequence[str] = ()) -> dict[str, T]:
        """The tables ``[[name]]``, at least one, their ``name`` members all different, by what
        messages call each; the file has none but these and the ``others``."""
        for key in self._tables:
            if key not in (name, *others):
                raise unknown(f"key in {self.where}:", key, (name, *others))
        found = self._tables.get(name)
        if not isinstance(found, list) or not found:
            raise UsageError(f"{self.where} has no [[{name}]]; at least one is needed")
        made: dict[str, T] = {}
        for number, table in enumerate(found, 1):
            said = table.get("name") if isinstance(table, dict) else None
            entry = f"{name} {number}" + (f" ({said})" if said else "")
            try:
                made[entry] = msgspec.convert(table, kind)
            except msgspec.ValidationError as error:
                raise self.wrong(entry, str(error).replace("`", "'").replace("$.", "")) from None
        names = [one.name for one in made.values()]
        if twice := [one for one in names if names.count(one) > 1]:
            raise UsageError(
                f"{self.where}: two of {name} have the name {twice[0]!r}; give each its own"
            )
        return made

    def pattern(self, entry: str, text: str, fields: Sequence[str]) -> Pattern:
        """The pattern of an entry's text."""
        try:
            return Pattern.parse(text, fields)
        except ValueError as error:
            raise self.wrong(entry, str(error)) from None

    def wrong(self, entry: str, what: str) -> UsageError:
        """The error of an entry."""
        return UsageError(f"{self.where}: {entry}: {what}")

    def checked_range(self, entry: str, ends: tuple[int, int], least: int, most: int) -> None:
        """Raise UsageError for a range that is empty, or goes beyond what is possible."""
        low, high = ends
        if not least <= low <= high <= most:
            raise self.wrong(
                entry,
                f"the range [{low}, {high}] is not possible; allowed are two whole numbers from "
                f"{least} to {most:,}, the smaller first",
            )
