"""The contract of a source: public data sets, tables for regression, texts, or one field of
weather.

A source is a frozen dataclass whose fields are the options of ``numtok fetch``. One of tables or
texts says which are meant and which files they are made of; the stage brings the files, where the
source leaves that to it, and gives them back to be read. One of a field opens it, and the stage
reads what is asked for, some steps at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import Field, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from numtok.data.weather.field import OpenField
from numtok.errors import UsageError
from numtok.registry import Registry
from numtok.row import Row
from numtok.store.quota import Quota


@dataclass(frozen=True)
class Origin:
    """One table, or one set of texts, before it is made.

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
    """Where data comes from. Subclasses are final frozen dataclasses, each a :class:`TableSource`,
    a :class:`TextSource` or a :class:`FieldSource`; their fields are options.

    ``revision`` rises when the same files become another table or field. A field whose name is a
    word of Python ends in ``_``, as ``from_`` for ``--from``. ``asks_for_names`` says that what
    there is cannot be named without a server.
    """

    revision: ClassVar[int]
    asks_for_names: ClassVar[bool] = False


class TableSource(Source):
    """Where tables come from."""

    @abstractmethod
    def origins(self) -> Iterator[Origin]:
        """The tables that are asked for, one at a time, because naming one may take a download.

        Raises StoreError where that fails, UsageError for what does not exist.
        """

    @abstractmethod
    def read(self, origin: Origin, files: Mapping[str, Path]) -> Dataset:
        """The content of the files of an origin, by name; DataError for what is not as expected."""


class TextRow(NamedTuple):
    """A row of texts, and what is to be counted of it: words for a table, joined by ``_``. ``more``
    are fields that are written with it and that no stage reads. Rows with the same ``alike`` come
    into one split; without it each row is drawn by its id."""

    row: Row
    noted: tuple[str, ...] = ()
    more: Mapping[str, Any] = MappingProxyType({})
    alike: str | None = None


class RejectedSourceRow(NamedTuple):
    """A row that cannot be used: where it is, and why not."""

    why: str


class Note(NamedTuple):
    """A sentence on all rows before it that a user must know."""

    told: str


class TextSource(Source):
    """Where texts come from."""

    @abstractmethod
    def origins(self) -> Iterator[Origin]:
        """The sets of texts that are asked for; UsageError for what does not exist."""

    @abstractmethod
    def rows(
        self, origin: Origin, files: Mapping[str, Path]
    ) -> Iterator[TextRow | RejectedSourceRow | Note]:
        """The rows in the files of an origin, by name, one at a time: files may be larger than
        memory. DataError for a file that is not as expected as a whole."""

    @property
    @abstractmethod
    def shares(self) -> str | None:
        """The splits that rows get by a hash of their id, as ``numtok encode --split`` has them;
        None where rows say themselves."""

    @property
    @abstractmethod
    def skips(self) -> bool:
        """Whether rows that cannot be used are counted and left out; else the first is an error."""

    @property
    @abstractmethod
    def licence(self) -> str:
        """Under which the data may be used."""

    @property
    @abstractmethod
    def attribution(self) -> str:
        """Who must be named by users of the data."""


class FieldSource(Source):
    """Where one field comes from."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What its artifact is called."""

    @property
    @abstractmethod
    def key(self) -> Mapping[str, str | None]:
        """What identifies it: its version is taken over this and the bytes of :meth:`files`."""

    @property
    @abstractmethod
    def drops(self) -> bool:
        """Whether days with missing values are left out; else they are an error."""

    @property
    @abstractmethod
    def licence(self) -> str:
        """Under which the data may be used."""

    @abstractmethod
    def attribution(self, years: str) -> str:
        """Who must be named by users of the data of some years, such as ``2019-2021``."""

    @abstractmethod
    def files(self) -> Mapping[str, Sequence[Path]]:
        """By the place that was given, the files on this machine that are read; empty for what
        lies elsewhere, which is identified by ``key`` alone."""

    @abstractmethod
    def open(self, quota: Quota) -> AbstractContextManager[OpenField]:
        """Open it, which reads the axes alone, and unpacks no more than the quota allows.

        Raises UsageError for options that do not fit it, DataError for what is no such field, and
        StoreError where a file or the network fails.
        """


SOURCES = Registry[Source]("numtok.data.sources", "source", Source)


class OneFileSource(TextSource):
    """A source with the settings ``from_``, a URL, a file, a folder with it, or empty for what was
    published, and ``on_error``, ``skip`` to leave out what cannot be used."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of the subclass

    from_: str
    on_error: str

    @property
    def skips(self) -> bool:
        return self.on_error == "skip"

    def origin(self, name: str, url: str, files: Sequence[str], key: Sequence[str]) -> Origin:
        """The one origin, of a file published at ``url``, which in a folder is called as one of
        ``files``; ``key`` are the settings that make other rows. UsageError where it is not there.
        """
        place = self._place(url, files)
        given = {field: getattr(self, field) for field in self.__dataclass_fields__}
        options = {
            field: value for field, value in given.items() if value != getattr(type(self), field)
        }
        file = place.partition("?")[0].rstrip("/").rpartition("/")[2]
        return Origin(name, options, {field: given[field] for field in key}, {file: place})

    def _place(self, url: str, files: Sequence[str]) -> str:
        if "://" in self.from_ or not self.from_:
            return self.from_ or url
        path = Path(self.from_)
        if path.is_dir():
            found = [path / file for file in files if (path / file).is_file()]
            if not found:
                raise UsageError(
                    f"--from {path}: there is no {' and no '.join(files)} in this folder; name the "
                    "file"
                )
            return str(found[0])
        if not path.is_file():
            raise UsageError(f"--from {path}: there is no such file; check the path")
        return str(path)
