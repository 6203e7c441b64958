"""The contract of a source: public data sets for regression, each a table.

A source is a frozen dataclass whose fields are the options of ``numtok fetch``. It says which
tables are meant and which files they are made of; the stage brings the files, where the source
leaves that to it, and gives them back to be read.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from numtok.registry import Registry


@dataclass(frozen=True)
class Origin:
    """One table before it is made.

    name
        What its artifact is called.
    options
        What gives this one table alone, of this place.
    key
        What identifies it within the source; its version is taken over this and the files' bytes.
    files
        By name, where each is: a URL, which the stage downloads, or a path.
    """

    name: str
    options: Mapping[str, str | int]
    key: Mapping[str, str | int]
    files: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The content of one table.

    rows
        Feature columns and the target, of any type that a table can hold.
    folds
        By name, the split of each row [n]; null is in none.
    notes
        Sentences that a user must know: who is to be named, and what is odd.
    """

    rows: "pa.Table"
    target: str
    folds: "Mapping[str, pa.Array[Any]]"
    notes: Sequence[str]


class Source(ABC):
    """Where tables come from. Subclasses are final frozen dataclasses; their fields are options.

    ``revision`` rises when the same files become another table. A field whose name is a word of
    Python ends in ``_``, as ``from_`` for ``--from``.
    """

    revision: ClassVar[int]

    @abstractmethod
    def origins(self) -> Iterator[Origin]:
        """The tables that are asked for, one at a time, because naming one may take a download.

        Raises StoreError where that fails, UsageError for what does not exist.
        """

    @abstractmethod
    def read(self, origin: Origin, files: Mapping[str, Path]) -> Dataset:
        """The content of the files of an origin, by name; DataError for what is not as expected."""


SOURCES: Registry[Source] = Registry("numtok.sources", "source")
