"""A mutant: one change of one file of numtok, a bug that somebody might write."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = ("chosen", "drawn")


@dataclass(frozen=True)
class Mutant:
    """``old``, which stands once in ``file``, becomes ``new``. ``breaks``: what goes wrong for a
    user. ``equivalent``: why nothing does, of a drawn one of which that is known."""

    name: str
    file: str
    old: str
    new: str
    breaks: str = ""
    equivalent: str = ""

    def applied(self, source: str) -> str:
        """The file's text with the change; ValueError unless ``old`` stands there once."""
        if (times := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the old text stands {times} times in {self.file}")
        return source.replace(self.old, self.new)

    def toml(self) -> str:
        """As the lists have it; literal strings, so that code stands there as it is."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        lines = (f"{key} = {_written(text)}" for key, text in told.items() if text or key == "new")
        return "\n".join(["[[mutant]]", *lines, ""])


def _written(text: str) -> str:
    mark = "'''" if "\n" in text or "'" in text else "'"
    return f"{mark}{text}{mark}"


def list_path(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.toml")


def read(name: str) -> list[Mutant]:
    """The mutants of one list."""
    return [Mutant(**one) for one in tomllib.loads(list_path(name).read_text())["mutant"]]


def write(name: str, mutants: list[Mutant]) -> None:
    list_path(name).write_text("\n".join(mutant.toml() for mutant in mutants))
