"""``numtok table``: a file of your own -> a table artifact."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok table`` was asked for.

    split
        Shares of the rows, by a seeded hash of the row's number, or by a column; None is
        ``test=0.2,validation=0.1``, unless the file has a column ``split`` (or ``split_0``,
        ``split_1``, ..., one a fold).
    features, drop
        The columns to take, or to leave; by default all that are neither target nor split.
    """

    path: str = setting(
        help="A .csv with a header, or .parquet.", metavar="FILE", argument=True, swept=False
    )
    _: KW_ONLY
    target: str = setting(help="The column to predict.", metavar="COLUMN")
    split: str | None = _fields.split_shares(
        "By a hash of the row's number; by=year,test=2020: by a column, in its order. Default: the "
        "columns split or split_0, split_1, ..., or else test=0.2,validation=0.1."
    )
    features: tuple[str, ...] = setting(
        (), 'Columns to take, "A,B" if it has a comma. Default: all others.', joined=True
    )
    drop: tuple[str, ...] = setting((), "Columns to leave, such as an id.", joined=True)
    on_error: str = _fields.on_error("A row without a usable target: fail, or skip it.")
    name: str | None = _fields.name("Default: the file's.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features and self.drop:
            raise UsageError("--features and --drop exclude each other; give one of them")
        for option, names in (("--features", self.features), ("--drop", self.drop)):
            if self.target in names:
                raise UsageError(f"{option} names the target {self.target!r}; leave it out there")
