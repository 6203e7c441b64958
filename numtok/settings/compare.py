"""``numtok compare``: compare reports, paired sample by sample."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok compare``.

    ``by`` names a group, ``against`` and ``column`` a published table and its column. ``until`` are
    levels of the metrics logged on the validation split. ``reference`` is the experiment that
    differences are from, by its label or one of its reports; None stands for the best.
    """

    reports: tuple[str, ...] = setting(
        help="REFs of reports on one test set.", argument=True, swept=False
    )
    _: KW_ONLY
    metrics: tuple[str, ...] = _fields.metrics(
        "Metric, such as r2 or relative-error-over,limit=0.1. Repeatable."
    )
    require: tuple[str, ...] = setting(
        (),
        'Requirement such as "r2>=0.99"; exit 1 if a report fails it. Repeatable.',
        metavar="GATE",
        swept=False,
    )
    by: str | None = setting(None, "Print one table per value of a group.", metavar="GROUP")
    against: str | None = _fields.against()
    column: str | None = _fields.column()
    until: tuple[str, ...] = setting(
        (),
        'Show training tokens until the validation split reached "loss<=0.5". Repeatable.',
        metavar="LEVEL",
    )
    reference: str | None = setting(
        None, "Report (or label) that differences are from. Default: the best.", metavar="REPORT"
    )
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
