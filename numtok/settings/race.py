"""``numtok race``: data -> the encoding that predicts their numbers best in the time there is."""

import math
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError, meaningless
from numtok.settings import _fields

_UNITS = ("minutes", "hours")  # of which one says how long
USUAL_MINUTES = 30.0


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok race`` was asked for; of ``minutes`` and ``hours`` one at most.

    ``schemes`` are specs of schemes where data are texts, of heads where they are a table; none
    stands for all that suit the data; ``rates`` None is two of texts, one of tables. ``target`` is
    the column of a table's file that is predicted, of texts the one target that is scored.
    ``preset`` None is a size by the data and the time.
    """

    inputs: tuple[str, ...] = setting(
        help="Texts, as encode takes them; or a table, as CSV or Parquet with --target, or its "
        "REF.",
        metavar="DATA...",
        argument=True,
    )
    _: KW_ONLY
    target: str | None = setting(
        None, "The column to predict; of texts the one target to score.", metavar="NAME"
    )
    minutes: float | None = setting(
        None,
        "About how long all of it may take. Default: 30.",
        metavar="M",
        above=0,
        below=math.inf,
        replaces=_UNITS,
    )
    hours: float | None = setting(
        None, "The same in hours.", metavar="H", above=0, below=math.inf, replaces=_UNITS
    )
    schemes: tuple[str, ...] = setting(
        (), 'Only these, "p10,exponents=-10..10" if one has a comma; of tables heads.', joined=True
    )
    seeds: int = setting(3, "Of each in the last round.", at_least=1, at_most=100)
    rates: int | None = setting(
        None,
        "Learning rates that each tries in the first round: the usual one, three times that, a "
        "third of it ... Default: 2; tables: 1.",
        at_least=1,
        at_most=9,
    )
    preset: str | None = setting(
        None, "The size of all models. Default: by data and time.", metavar="SPEC"
    )
    drop: tuple[str, ...] = setting(
        (), "Columns of a file to leave, such as an id.", of="tables", joined=True
    )
    split: str | None = _fields.split_shares(
        "Default, where data have no splits of their own: by time where they have one (by=year,"
        "validation=2019,test=2021), else validation=0.15,test=0.15[,seed=S]."
    )
    numerals: str | None = _fields.numerals()
    text_field: str = _fields.text_field()
    on_error: str = _fields.on_error(
        "A bad row, or a table's row without a usable target: fail, or skip it."
    )
    jobs: int | None = setting(
        None, "Runs side by side. Default: one a GPU, or one a core.", at_least=1, repeat=False
    )
    engine: str = _fields.engine()
    device: str = _fields.device()
    devices: str = _fields.devices("each with runs of its own", default="all")
    name: str | None = _fields.name("Of the plan. Default: the data's and race.")
    html: Path | None = _fields.html()  # noqa: RUF009
    dry_run: bool = _fields.dry_run("Say what would race, in which rounds, and train nothing.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minutes is not None and self.hours is not None:
            raise UsageError("--minutes and --hours are two budgets; give one of them")
        if self.engine != "local" and self.devices != "all":
            raise meaningless("devices", "--engine ray, where each run has a GPU of a node")

    @property
    def seconds(self) -> float:
        """The budget."""
        if self.hours is not None:
            return 3600 * self.hours
        return 60 * (USUAL_MINUTES if self.minutes is None else self.minutes)
