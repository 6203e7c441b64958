"""Settings of ``numtok eval``, which evaluates a model on a split of data."""

from dataclasses import KW_ONLY, dataclass
from functools import partial

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

_auto = partial(setting, "auto", choices=("auto", "no"), advanced=True, omit_default=True)


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok eval``.

    data
        REF of the data to evaluate on; None for the training data of the model.
    fill
        Order in which numbers are filled in: ``parallel`` (the default) or ``left-to-right`` for
        masked models; ``answers`` for autoregressive models, which then write the answer of each
        row as text.
    decode
        Decoding: ``constrained`` by the scheme's grammar, or ``free``.
    point
        Point prediction. None means ``mode`` for heads that predict tokens or exact digits, and
        ``median`` for other heads and for tables.
    batch
        Rows per batch. It is not part of a report's settings, because it only changes the last bits
        of float32 predictions and densities.
    """

    model: str = setting(help="REF of a model", argument=True, swept=False)
    data: str | None = setting(
        None,
        "REF of data with the model's encoding, or of a table with its columns",
        argument=True,
        shown_default="the training data",
        swept=False,
    )
    _: KW_ONLY
    split: str = setting("test", "Split to evaluate", metavar="NAME")
    fill: str | None = _fields.fill(
        "How to fill in numbers: parallel (the default for masked models), left-to-right, or "
        "answers, written as text by autoregressive models and compared as a whole"
    )
    decode: str = _fields.decode()
    point: str | None = _fields.point()
    draws: int = _fields.draws()
    temperature: float = _fields.temperature()
    top_k: int = _fields.top_k()
    top_p: float = _fields.top_p()
    rows: int | None = setting(
        None,
        "Number of rows to evaluate, chosen by a hash of their ids; clusters stay whole",
        flag="limit",
        formerly=("rows",),
        at_least=1,
        shown_default="all",
    )
    on_error: str = _fields.on_error(
        "Fail on a row that is too long for the model, or skip it", of="texts"
    )
    batch: int = _fields.batch_of_rows(
        "Rows per batch; reduced if memory runs out, or if rows with labels are long"
    )
    fields: str = _auto(
        "Report metrics by field (as in profile); auto: if rows have no targets",
        formerly=("slots",),
        of="texts",
        choices=("auto", "yes", "no"),
    )
    intervals: str = _auto(
        "Calibrate 90% intervals on the split calibration, otherwise validation; no: leave out"
    )
    baselines: str = _auto(
        "Compare with baselines; no: leave them out, and save the time to fit them"
    )
    metrics: tuple[str, ...] = _fields.metrics(
        "Additional metric, such as adjusted-r2,p=4; repeatable"
    )
    device: str = _fields.device()
    devices: str = _fields.devices("each predicts part of the rows")
    compile: bool = setting(
        False,
        "Compile the model, which takes minutes and rarely helps on a CPU",
        of="texts",
        advanced=True,
    )
    against: str | None = _fields.against(swept=False)
    column: str | None = _fields.column(swept=False)
    all_metrics: bool = setting(
        False, "Show all metrics, not only eight of them", swept=False, repeat=False
    )
    name: str | None = _fields.name("MODEL-SPLIT")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
