"""``numtok probe``: a model, and mostly encoded data -> how it follows its numbers."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok probe`` was asked for; ``options`` are settings of the kind beside those of its
    spec."""

    kind: str = setting(
        help="How the model is looked at; numtok probe KIND --help lists its options.",
        argument=True,
        expands=True,
        registry="probes",
    )
    model: str = setting(help="REF of a model of texts.", argument=True)
    data: str | None = setting(
        None, "REF of data encoded as the model's were.", metavar="ENCODED", argument=True
    )
    _: KW_ONLY
    device: str = _fields.device()
    devices: str = _fields.devices("each with a part of the rows")
    name: str | None = _fields.name("Default: the model's, and what is looked at.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    options: Mapping[str, Any] = field(default_factory=dict)
