"""``numtok explain``: a number -> what each scheme writes for it."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok explain`` was asked for; ``schemes`` none: all that need no settings."""

    number: str = setting(help="As written: -60.2, 6.02e23.", argument=True)
    schemes: tuple[str, ...] = setting(
        (), "Only these; can be given again.", flag="scheme", registry="schemes"
    )
    numerals: str | None = _fields.numerals()
