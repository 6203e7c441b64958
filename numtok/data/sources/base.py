"""Base classes for sources of public data: regression tables, texts or a weather field.

A source is a frozen dataclass whose fields are the options of ``numtok fetch``. A source of tables
or texts lists its data sets and their files. The fetch stage downloads the files and passes them
back to the source, which reads them. A weather source opens its field, and the stage reads the
field a few time steps at a time.
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
    """One table or one set of texts that a source offers, before it is fetched.

    name
        Name of the artifact that will contain it.
    options
        Options of ``numtok fetch`` that select only this data set.
    key
        Settings that identify the data set within the source. Together with the bytes of the files,
        they determine the version of the artifact.
    files
        URL (to be downloaded by the stage) or path of each file, keyed by file name.
    """

    name: str
    options: Mapping[str, str | int]
    key: Mapping[str, str | int]
    files: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The content of one table, as read from the files of its :class:`Origin`.

    rows
        Feature columns and the target, of any type that tables support.
    folds
        Split of each row [n], keyed by the name of the fold; null for rows without a split.
    notes
        Notes for users, such as an attribution and peculiarities of the data.
    """

    rows: pa.Table
    target: str
    folds: "Mapping[str, pa.Array[Any]]"
    notes: Sequence[str]


class Source(ABC):
    """Base class for all sources of public data.

    Subclasses are final frozen dataclasses, each a :class:`TableSource`, a :class:`TextSource` or a
    :class:`FieldSource`. Their fields are options. The name of a field ends in ``_`` if it would be
    a Python keyword otherwise, such as ``from_`` for ``--from``. Increase ``revision`` when the
    same files result in different data. Set ``asks_for_names`` if listing the data sets requires a
    request to a server.
    """

    revision: ClassVar[int]
    asks_for_names: ClassVar[bool] = False


class TableSource(Source):
    """Base class for sources that provide regression tables, each with its own folds."""

    @abstractmethod
    def origins(self) -> Iterator[Origin]:
        """Yield the selected tables, one at a time, because each may require a download.

        Raises StoreError if a download fails, and UsageError if the name of a table is unknown.
        """

    @abstractmethod
    def read(self, origin: Origin, files: Mapping[str, Path]) -> Dataset:
        """Read a table from the files of its origin.

        ``files`` maps file names to paths. Raises DataError if the content of a file is invalid.
        """


class TextRow(NamedTuple):
    """A row from a text source.

    noted
        Names of counters to increase by one, with words joined by ``_``.
    more
        Extra fields to write with the row. Stages do not read them.
    alike
        Rows with the same value are assigned to the same split. By default, each row is assigned by
        its id.
    """

    row: Row
    noted: tuple[str, ...] = ()
    more: Mapping[str, Any] = MappingProxyType({})
    alike: str | None = None


class RejectedSourceRow(NamedTuple):
    """A source row that cannot be used; ``why`` states its location and the reason."""

    why: str


class Note(NamedTuple):
    """A note for users about all rows that were yielded before it."""

    text: str


class TextSource(Source):
    """Base class for sources that provide texts with numbers.

    Each row names its split or is assigned to one by the rule in :attr:`shares`.
    """

    @abstractmethod
    def origins(self) -> Iterator[Origin]:
        """Yield the selected sets of texts. Raises UsageError if the name of a set is unknown."""

    @abstractmethod
    def rows(
        self, origin: Origin, files: Mapping[str, Path]
    ) -> Iterator[TextRow | RejectedSourceRow | Note]:
        """Yield the rows of a set of texts, read from the files of its origin.

        ``files`` maps file names to paths; files may be larger than memory. Rejected rows and notes
        are also yielded. Raises DataError if an entire file is unusable.
        """

    @property
    @abstractmethod
    def shares(self) -> str | None:
        """Rule that assigns rows to splits, as in ``numtok encode --split``.

        None if each row names its split.
        """

    @property
    @abstractmethod
    def skips(self) -> bool:
        """True if bad rows are counted and skipped; False if a bad row causes an error."""

    @property
    @abstractmethod
    def licence(self) -> str:
        """License of the data."""

    @property
    @abstractmethod
    def attribution(self) -> str:
        """Attribution that users of the data must publish."""


class FieldSource(Source):
    """Base class for sources that provide one weather field, read in blocks of days."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the artifact."""

    @property
    @abstractmethod
    def key(self) -> Mapping[str, str | None]:
        """Settings that identify the field.

        Together with the bytes of :meth:`files`, they determine the version of the artifact.
        """

    @property
    @abstractmethod
    def drops(self) -> bool:
        """True if days with missing values are dropped; False if they cause an error."""

    @property
    @abstractmethod
    def licence(self) -> str:
        """License of the data."""

    @abstractmethod
    def attribution(self, years: str) -> str:
        """Return the attribution for data from ``years``, such as ``2019-2021``."""

    @abstractmethod
    def files(self) -> Mapping[str, Sequence[Path]]:
        """Return the local files to read, keyed by the location that the user passed.

        The result is empty for remote data, which is only identified by :attr:`key`.
        """

    @abstractmethod
    def open(self, quota: Quota) -> AbstractContextManager[OpenField]:
        """Open the field and read its axes. Unpacked archives count towards the quota.

        Raises UsageError if an option does not match the field, DataError if the data cannot be
        read as a field, and StoreError if reading a file or the network fails.
        """


SOURCES = Registry[Source]("numtok.data.sources", "source", Source)


class OneFileSource(TextSource):
    """Base class for sources whose texts are in a single file.

    ``from_`` is a URL, a file or a folder that contains the file; if empty, the published file is
    downloaded. If ``on_error`` is ``fail``, bad rows cause an error; if it is ``skip``, they are
    omitted.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of the subclass

    from_: str
    on_error: str

    @property
    def skips(self) -> bool:
        return self.on_error == "skip"

    def origin(self, name: str, url: str, files: Sequence[str], key: Sequence[str]) -> Origin:
        """Return the single origin: the file published at ``url``, or the copy in ``from_``.

        Raises UsageError if the copy is not found.

        files
            Possible names of the file in a folder.
        key
            Names of the settings that determine the rows.
        """
        location = self._location(url, files)
        settings = {field: getattr(self, field) for field in self.__dataclass_fields__}
        options = {
            field: value for field, value in settings.items() if value != getattr(type(self), field)
        }
        file = location.partition("?")[0].rstrip("/").rpartition("/")[2]
        return Origin(name, options, {field: settings[field] for field in key}, {file: location})

    def _location(self, url: str, files: Sequence[str]) -> str:
        if "://" in self.from_ or not self.from_:
            return self.from_ or url
        path = Path(self.from_)
        if path.is_dir():
            matches = [path / file for file in files if (path / file).is_file()]
            if not matches:
                raise UsageError(
                    f"--from {path}: this folder has no {' or '.join(files)}. Name the file"
                )
            return str(matches[0])
        if not path.is_file():
            raise UsageError(f"--from {path}: file not found. Check the path")
        return str(path)
