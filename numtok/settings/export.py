"""``numtok export``: an artifact -> a folder as other libraries have it."""

from dataclasses import dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting

DATASETS, TRANSFORMERS = "datasets", "transformers"


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok export`` was asked for."""

    ref: str = setting(help="REF of encoded data, or of a model of texts.", argument=True)
    to: Path = setting(  # noqa: RUF009  # a field
        help="The folder that is made; it must not be there yet.", metavar="DIR"
    )
    format: str | None = setting(
        None,
        "Of the folder: what datasets.load_dataset(DIR) opens, of encoded data, or what "
        "AutoModel.from_pretrained(DIR) opens, of a model; default: which of them REF can be.",
        choices=(DATASETS, TRANSFORMERS),
    )
