"""Settings of ``numtok fetch``, which downloads tables, texts and weather fields."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok fetch``; ``options`` are the settings of the source."""

    source: str = _fields.part(
        "sources", "Source of the data; numtok fetch SOURCE --help lists its options"
    )
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = _fields.name("SOURCE-SET")
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    dry_run: bool = _fields.dry_run(
        "Print what would be downloaded of a weather field and its size, and stop"
    )
    disk_limit: str | None = _fields.disk_limit()
