"""``numtok compare``: reports -> a comparison, paired sample by sample."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok compare`` was asked for: ``by`` names a group, ``against`` and ``column`` a
    published table and its column; ``until`` are levels of what was logged of the validation split.
    ``reference`` is the experiment that differences are from, by its label or a report of it; None:
    the best."""

    reports: tuple[str, ...] = setting(
        help="REFs of reports on one test set.", argument=True, swept=False
    )
    _: KW_ONLY
    metrics: tuple[str, ...] = _fields.metrics("r2, relative-error-over,limit=0.1 ...; repeatable.")
    require: tuple[str, ...] = setting(
        (), '"r2>=0.99": exit 1 if a report fails; repeatable.', metavar="GATE", swept=False
    )
    by: str | None = setting(None, "A table for each value of a group.", metavar="GROUP")
    against: str | None = _fields.against()
    column: str | None = _fields.column()
    until: tuple[str, ...] = setting(
        (), '"loss<=0.5": tokens until the validation split had that; repeatable.', metavar="LEVEL"
    )
    reference: str | None = setting(
        None, "Differences are from this one, or its label. Default: the best.", metavar="REPORT"
    )
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
