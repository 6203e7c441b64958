"""``numtok export``: an artifact -> a folder as other libraries have it."""

from dataclasses import dataclass
from pathlib import Path

from numtok.declaration import check, setting

FORMATS = ("datasets",)


@dataclass(frozen=True)
class Config:
    """What ``numtok export`` was asked for."""

    ref: str = setting(help="REF of encoded data.", metavar="REF", argument=True)
    to: Path = setting(  # noqa: RUF009  # a field
        help="The folder that is made; it must not be there yet.", metavar="DIR"
    )
    format: str = setting(
        "datasets", "Of the folder: what datasets.load_dataset(DIR) opens.", choices=FORMATS
    )

    def __post_init__(self) -> None:
        check(self)
