"""Settings of ``numtok figure``, which plots reports, probes or models."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

FORMATS = (".png", ".svg", ".pdf")


def _wrong_path(value: Path) -> str | None:
    return None if value.suffix in FORMATS else f"must end in {', '.join(FORMATS)}"


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok figure``.

    size
        ``WxH`` in pixels; None for the default size of the figure kind.
    options
        Settings of the figure kind, in addition to those in the spec ``kind``.
    """

    kind: str = _fields.part(
        "figures", "Kind of figure; numtok figure KIND --help lists its options"
    )
    refs: tuple[str, ...] = setting(
        help="REFs of reports or probes; for density, of models and a table", argument=True
    )
    _: KW_ONLY
    out: Path = setting(  # noqa: RUF009  # a field
        help="File to write: .png, .svg or .pdf", refuse=_wrong_path
    )
    size: str | None = setting(
        None, "Size in pixels", metavar="WxH", shown_default="800x600; more for grids"
    )
    options: Mapping[str, Any] = field(default_factory=dict)
