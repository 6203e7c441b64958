"""``numtok predict``: a model and rows without the truth -> what the model says of them."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError, meaningless
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok predict`` was asked for; how numbers are read off as in ``eval``.

    fold
        Of tables: whose model of several predicts; None: there is one alone.
    """

    model: str = setting(help="REF of a model.", argument=True)
    file: str | None = setting(
        None,
        "Texts: JSONL with one in each line, plain, .gz, .zst; - for standard input. Tables: CSV "
        "or Parquet, without the target.",
        argument=True,
    )
    _: KW_ONLY
    text: tuple[str, ...] = setting(
        (),
        "In place of a file; can be given again.",
        metavar="TEXT",
        of="texts",
        replaces=("text_field",),
    )
    text_field: str = _fields.text_field("The field that holds the text.", of="texts")
    fill: str | None = _fields.fill(
        "Masked models: parallel (the default), or left-to-right. Autoregressive ones: answers, "
        "which are written where the text ends."
    )
    decode: str = _fields.decode()
    point: str | None = _fields.point()
    draws: int = _fields.draws()
    temperature: float = _fields.temperature()
    top_k: int = _fields.top_k()
    top_p: float = _fields.top_p()
    fold: int | None = setting(
        None, "Whose model of several.", metavar="K", of="tables", at_least=0
    )
    batch: int = _fields.batch_of_rows("Rows at a time; fewer where memory is out.")
    device: str = _fields.device()
    devices: str = _fields.devices("each with a part of the rows")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.file is None) == (not self.text):
            raise UsageError(
                "predict reads one of FILE and --text; give a file of rows, - or a text"
            )
        if self.text and self.text_field != "text":
            raise meaningless("text-field", "--text")
