"""``numtok explain``: write one number in each scheme."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok explain``; without ``schemes``, all that need no settings."""

    number: str = setting(help="Number as written, such as -60.2 or 6.02e23.", argument=True)
    schemes: tuple[str, ...] = setting(
        (), "Schemes to show. Repeatable. Default: all.", flag="scheme", registry="schemes"
    )
    numerals: str | None = _fields.numerals()
