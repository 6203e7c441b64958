"""``numtok report``: a report, printed again."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok report`` was asked for: ``row`` and ``column`` of the published table
    ``against``."""

    ref: str = setting(help="REF of a report.", argument=True)
    _: KW_ONLY
    against: str | None = _fields.against()
    row: str | None = setting(None, "Its row. Default: the scheme.", metavar="NAME")
    column: str | None = _fields.column()
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.against is None and (self.row or self.column):
            raise UsageError(
                "--row and --column choose from a published table; name the table with --against"
            )
