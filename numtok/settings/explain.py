"""Settings of ``numtok explain``, which writes a number in each scheme."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok explain``; if ``schemes`` is empty, all schemes that need no settings
    are shown."""

    number: str = setting(help="Number as written in text, such as -60.2 or 6.02e23", argument=True)
    schemes: tuple[str, ...] = setting(
        (), "Scheme to show; repeatable", flag="scheme", registry="schemes", shown_default="all"
    )
    numerals: str | None = _fields.numerals()
