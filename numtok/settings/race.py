"""Settings of ``numtok race``, which searches for the best encoding of a data set."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError, meaningless
from numtok.settings import _fields, _rendering

#: At most one of minutes and hours is set.
_time = partial(setting, None, above=0, below=math.inf, replaces=("minutes", "hours"))
USUAL_MINUTES = 30.0


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok race``; at most one of ``minutes`` and ``hours`` is set.

    target
        Column of a table file to predict, or target in the texts to score.
    fields, drop
        Fields of a file for candidates to read, or to leave out.
    schemes
        Specs of the schemes for texts and of the heads for columns that compete. If empty, all that
        suit the data compete.
    models
        Pretrained models. Each makes a table of hidden states of the rows, on which heads compete.
    rates
        Number of learning rates tried per encoding in the first round; None for two (texts) or one
        (tables).
    preset
        Spec that determines the size of all models of texts, or of all models of columns; None for
        a size that suits the data and the time.
    """

    inputs: tuple[str, ...] = setting(
        help="A CSV, JSON Lines or Parquet file with --target, texts as for encode, or a REF of a "
        "table",
        metavar="DATA...",
        argument=True,
    )
    _: KW_ONLY
    target: str | None = setting(
        None, "Field to predict in a file, or target to score (texts)", metavar="FIELD", single=True
    )
    fields: tuple[str, ...] = _rendering.fields()
    drop: tuple[str, ...] = _rendering.drop()
    minutes: float | None = _time(
        "Approximate time for the whole race", shown_default="30", metavar="M"
    )
    hours: float | None = _time("Approximate time for the whole race, in hours", metavar="H")
    schemes: tuple[str, ...] = setting(
        (),
        "Schemes for texts and heads for columns to try; quote a spec that contains a comma: "
        '"p10,digits=4"',
        joined=True,
        shown_default="all that suit the data",
    )
    models: tuple[str, ...] = setting(
        (),
        "Frozen pretrained model (hf:FOLDER_OR_ID or a GGUF file) for heads to read; repeatable",
        flag="model",
        metavar="MODEL",
    )
    seeds: int = setting(3, "Seeds per finalist in the last round", at_least=1, at_most=100)
    rates: int | None = setting(
        None,
        "Number of learning rates to try per encoding in round 1: 1, 3, 1/3, ... times the default",
        flag="learning-rates",
        formerly=("rates",),
        shown_default="2; 1 for tables",
        at_least=1,
        at_most=9,
    )
    preset: str | None = setting(
        None, "Size of all models", metavar="SPEC", shown_default="depends on data and time"
    )
    split: str | None = _fields.split_shares(
        "Random split, such as validation=0.1,test=0.1; or split by a group: by=year,test=2021",
        default="existing splits; by time if rows have times; otherwise validation=0.12,"
        "calibration=0.08,test=0.15",
    )
    numerals: str | None = _fields.numerals()
    not_numbers: tuple[str, ...] = _fields.not_numbers()
    text_field: str | None = _fields.text_field()
    on_error: str = _fields.on_error(
        "On a bad row, or one without a usable target: fail, or skip it"
    )
    jobs: int | None = setting(
        None,
        "Number of parallel runs",
        at_least=1,
        repeat=False,
        shown_default="one per GPU, or per core up to twice --seeds",
    )
    engine: str = _fields.engine()
    device: str = _fields.device()
    devices: str = _fields.devices("runs are distributed over them", default="all")
    name: str | None = _fields.name("DATA-race; the model is named DATA-SCHEME-PRESET")
    html: Path | None = _fields.html()  # noqa: RUF009
    dry_run: bool = _fields.dry_run("Print the plan without training")

    def __post_init__(self) -> None:
        super().__post_init__()
        _rendering.check_choices(self)
        if self.minutes is not None and self.hours is not None:
            raise UsageError("--minutes and --hours cannot be combined. Choose one")
        if self.engine != "local" and self.devices != "all":
            raise meaningless("devices", "--engine ray, where each run has a GPU of a node")

    @property
    def seconds(self) -> float:
        """Time budget in seconds."""
        if self.hours is not None:
            return 3600 * self.hours
        return 60 * (USUAL_MINUTES if self.minutes is None else self.minutes)
