"""Settings of ``numtok features``, which makes a table from texts and a pretrained model."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields, _rendering


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok features``.

    target
        Name of the target; None if the rows have only one.
    """

    inputs: tuple[str, ...] = setting(help=_fields.INPUTS, argument=True, swept=False)
    _: KW_ONLY
    model: str = setting(
        help="Pretrained model: a folder, a hub id, or a GGUF file", metavar="FOLDER_OR_ID"
    )
    pooling: Literal["mean", "last"] = setting(
        "mean",
        "Feature vector: the mean of the hidden states, or the state of the last token",
        choices=("mean", "last"),
        counts="version",
    )
    target: str | None = setting(
        None,
        "Target of the rows, or field of a file, to predict",
        metavar="NAME",
        single=True,
        counts="version",
        shown_default="the only one",
    )
    fields: tuple[str, ...] = _rendering.fields()
    drop: tuple[str, ...] = _rendering.drop()
    split: str | None = _fields.split_shares()
    numerals: str | None = _fields.numerals(counts="version")
    text_field: str | None = _fields.text_field()
    on_error: str = _fields.on_error("On a bad row: fail, or skip it")
    max_line: int = _fields.max_line()
    disk_limit: str | None = _fields.disk_limit()
    batch: int = setting(
        256, "Rows per batch; reduced if memory runs out", metavar="ROWS", at_least=1, repeat=False
    )
    device: str = _fields.device(repeat=False)
    name: str | None = _fields.name("INPUT-MODEL")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        _rendering.check_fields(self)
        super().__post_init__()
