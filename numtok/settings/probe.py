"""Settings of ``numtok probe``, which measures how outputs depend on the numbers in the input."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok probe``. ``options`` are probe settings, in addition to those in the
    spec ``kind``."""

    kind: str = _fields.part("probes", "Kind of probe; numtok probe KIND --help lists its options")
    model: str = setting(help="REF of a text model", argument=True)
    data: str | None = setting(
        None, "REF of data with the model's encoding", metavar="ENCODED", argument=True
    )
    _: KW_ONLY
    device: str = _fields.device()
    devices: str = _fields.devices("each processes part of the rows")
    name: str | None = _fields.name("MODEL-KIND; for examples, MODEL-SPLIT")
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    options: Mapping[str, Any] = field(default_factory=dict)
