"""``numtok figure``: reports, probes or models -> a picture."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from numtok.declaration import CommandSettings, setting

FORMATS = (".png", ".svg", ".pdf")


def _wrong_path(value: Path) -> str | None:
    told = f"is not possible; a figure is a file that ends in {', '.join(FORMATS)}"
    return None if value.suffix in FORMATS else told


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok figure`` was asked for; ``size`` is ``WxH``, None for one that suits;
    ``options`` are settings of the kind beside those of its spec."""

    kind: str = setting(
        help="What is drawn; numtok figure KIND --help lists its options.",
        argument=True,
        expands=True,
        registry="figures",
    )
    refs: tuple[str, ...] = setting(
        help="REFs of reports or probes; density: of models and a table.", argument=True
    )
    _: KW_ONLY
    out: Path = setting(  # noqa: RUF009  # a field
        help="Ends in .png, .svg or .pdf.", refuse=_wrong_path
    )
    size: str | None = setting(None, "In pixels. Default: 800x600, grids more.", metavar="WxH")
    options: Mapping[str, Any] = field(default_factory=dict)
