"""Settings of ``numtok report``, which prints a report from the store."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok report``; ``row`` and ``column`` are names in the published table
    ``against``."""

    ref: str = setting(help="REF of a report", argument=True)
    _: KW_ONLY
    against: str | None = _fields.against()
    row: str | None = setting(
        None, "Row of the published table", metavar="NAME", shown_default="the scheme"
    )
    column: str | None = _fields.column()
    all_metrics: bool = setting(False, "Show all metrics, not only eight of them", repeat=False)
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.against is None and (self.row or self.column):
            raise UsageError("--row and --column need a published table. Name it with --against")
