"""``numtok fetch``: public data sets -> tables, texts, or a field."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok fetch`` was asked for; ``options`` are the settings of the source."""

    source: str = setting(
        help="numtok fetch SOURCE --help lists its options.",
        argument=True,
        expands=True,
        registry="sources",
    )
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = _fields.name("Default: the source's and the set's.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    dry_run: bool = _fields.dry_run("Of a field: say what would be read, and how much.")
    disk_limit: str | None = _fields.disk_limit()
