"""``numtok errors``: reports -> where their predictions go wrong."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok errors`` was asked for."""

    reports: tuple[str, ...] = setting(help="REFs of reports.", argument=True)
    target: str | None = setting(None, "Only numbers of that target. Default: all.", metavar="NAME")
    digits: int = setting(
        3, "Significant digits that numbers are compared with.", at_least=1, at_most=17
    )
    top: int = setting(
        5, "Numbers predicted too often that are listed.", metavar="K", at_least=1, at_most=200
    )
