"""``numtok profile``: a look at the numbers of texts, and at what schemes cost and lose."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok profile`` was asked for; ``schemes`` are specs, none stands for all that need
    no settings."""

    inputs: tuple[str, ...] = setting(help=_fields.INPUTS, argument=True, repeat=False)
    _: KW_ONLY
    schemes: tuple[str, ...] = setting(
        (), "Only these; can be given again.", flag="scheme", registry="schemes", repeat=False
    )
    split: str | None = _fields.split_shares()
    numerals: str | None = _fields.numerals()
    text_field: str = _fields.text_field()
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    on_error: str = _fields.on_error("A bad row: fail, or skip it.")
    max_line: int = _fields.max_line()
    disk_limit: str | None = _fields.disk_limit()
    html: Path | None = _fields.html()  # noqa: RUF009
