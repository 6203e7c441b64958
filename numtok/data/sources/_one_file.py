"""Texts that are published as one file: where it is, and what one set of them is known by."""

from collections.abc import Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any, ClassVar

from numtok.data.sources.base import Origin, TextSource
from numtok.errors import UsageError


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
