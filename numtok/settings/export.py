"""Settings of ``numtok export``, which writes an artifact as a folder for other libraries."""

from dataclasses import dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting

DATASETS, TRANSFORMERS = "datasets", "transformers"


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok export``. If ``format`` is None, the format depends on the artifact
    kind."""

    ref: str = setting(help="REF of encoded data, or of a text model", argument=True)
    to: Path = setting(  # noqa: RUF009  # a field
        help="Folder to create; it must not exist", metavar="DIR"
    )
    format: str | None = setting(
        None,
        "datasets, to load encoded data with load_dataset(DIR), or transformers, to load a model "
        "with AutoModel.from_pretrained(DIR)",
        metavar="FORMAT",
        shown_default="depends on the kind of REF",
        choices=(DATASETS, TRANSFORMERS),
    )
