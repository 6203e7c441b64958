"""Settings of ``numtok profile``, which describes the numbers in texts and how schemes encode
them."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields, _rendering


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok profile``. ``schemes`` are scheme specs; if empty, all schemes that need
    no settings are profiled."""

    inputs: tuple[str, ...] = setting(help=_fields.INPUTS, argument=True, repeat=False)
    _: KW_ONLY
    schemes: tuple[str, ...] = setting(
        (),
        "Scheme to profile; repeatable",
        flag="scheme",
        registry="schemes",
        repeat=False,
        shown_default="all",
    )
    target: tuple[str, ...] = _rendering.target()
    fields: tuple[str, ...] = _rendering.fields()
    drop: tuple[str, ...] = _rendering.drop()
    split: str | None = _fields.split_shares()
    numerals: str | None = _fields.numerals()
    not_numbers: tuple[str, ...] = _fields.not_numbers()
    text_field: str | None = _fields.text_field()
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    on_error: str = _fields.on_error("Fail on a bad row, or skip it")
    max_line: int = _fields.max_line()
    disk_limit: str | None = _fields.disk_limit()
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        _rendering.check(self)
        super().__post_init__()
