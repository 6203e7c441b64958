"""Settings of ``numtok table``, which imports a CSV or Parquet file as a table artifact."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields, _rendering


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok table``.

    split
        Fractions of the splits, to which rows are assigned by a seeded hash of the row number; or
        the values of a column at which splits begin, as in ``by=year,test=2020``. None means
        ``test=0.2,validation=0.1,calibration=0.1``, unless the file has a column ``split`` (or
        ``split_0``, ``split_1``, ..., one per fold).
    features, drop
        Columns to use or to leave out. By default, all columns except the target and the splits are
        used.
    """

    path: str = setting(
        help=".csv or .tsv with a header, .jsonl or .parquet",
        metavar="FILE",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    target: str = setting(help="Column to predict", metavar="COLUMN", single=True)
    split: str | None = _fields.split_shares(
        "Random split, such as test=0.2,validation=0.1; or split by a column: by=year,test=2020",
        default="the columns split or split_0, split_1, ..., or test=0.2,validation=0.1,"
        "calibration=0.1",
    )
    features: tuple[str, ...] = setting(
        (),
        'Columns to use; quote a name that contains a comma: "A,B"',
        joined=True,
        shown_default="all others",
    )
    drop: tuple[str, ...] = setting((), "Columns to leave out, such as an id", joined=True)
    on_error: str = _fields.on_error(
        "On a bad row, or one without a usable target: fail, or skip it"
    )
    name: str | None = _fields.name("FILE")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        _rendering.check_names(
            {"target": (self.target,), "features": self.features, "drop": self.drop}
        )
