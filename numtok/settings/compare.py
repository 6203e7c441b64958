"""Settings of ``numtok compare``, which compares reports on the same test set, row by row."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok compare``.

    by
        Name of a group, such as ``year``. Each of its values gets a table.
    against, column
        Published table to show along with the results, and the column of the table.
    until
        Levels of metrics, such as ``loss<=0.5``. The comparison shows the number of training tokens
        needed to reach each level on the validation split.
    record
        Folder of the measurements that ``numtok fidelity`` reads.
    reference
        Experiment that the others are compared with, given by its label or one of its reports; None
        for the best.
    """

    reports: tuple[str, ...] = setting(
        help="REFs of reports on one test set", argument=True, swept=False
    )
    _: KW_ONLY
    metrics: tuple[str, ...] = _fields.metrics(
        "Metric to compare, such as r2 or relative-error-over,limit=0.1; repeatable"
    )
    require: tuple[str, ...] = _fields.require(
        'Threshold such as "r2>=0.99"; exit with code 1 if a report misses it; repeatable'
    )
    by: str | None = setting(None, "Group to show one table per value of", metavar="GROUP")
    against: str | None = _fields.against()
    column: str | None = _fields.column()
    until: tuple[str, ...] = setting(
        (),
        'Validation level such as "loss<=0.5", to show the tokens needed to reach it; repeatable',
        flag="tokens-to",
        formerly=("until",),
        metavar="LEVEL",
    )
    reference: str | None = setting(
        None,
        "Report, or label, to compare the others with",
        metavar="REPORT",
        shown_default="the best",
    )
    record: str | None = setting(
        None,
        "With --against: add the values to PAPER.csv in this folder, for numtok fidelity",
        metavar="DIR",
        swept=False,
    )
    html: Path | None = _fields.html()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
        if self.record is not None and self.against is None:
            raise UsageError("--record needs a published table. Name it with --against")
