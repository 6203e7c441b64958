"""``numtok eval``: a model and a split of data -> a report."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok eval`` was asked for.

    data
        None: what the model learnt from.
    fill
        For masked models ``parallel`` (None means that) or ``left-to-right``; ``answers``, for
        autoregressive ones, has them write each row's answer as text.
    decode
        ``constrained`` by the scheme's grammar or ``free``.
    point
        None: ``mode``, of tables ``median``.
    batch
        No setting of the report, since predictions and densities depend on it in the last bits of
        float32 alone.
    """

    model: str = setting(help="REF of a model.", argument=True, swept=False)
    data: str | None = setting(
        None,
        "REF of data encoded as the model's were, or of a table as its. Default: the data that it "
        "learnt from.",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    split: str = setting("test", "The split to predict.", metavar="NAME")
    fill: str | None = _fields.fill(
        "Masked models: parallel (the default, all at once), or left-to-right. Autoregressive "
        "ones: answers, which are written as text and compared as a whole."
    )
    decode: str = _fields.decode()
    point: str | None = _fields.point()
    draws: int = _fields.draws()
    temperature: float = _fields.temperature()
    top_k: int = _fields.top_k()
    top_p: float = _fields.top_p()
    rows: int | None = setting(
        None,
        "Number of rows to evaluate, drawn by a hash of their ids; clusters stay whole. "
        "Default: all.",
        at_least=1,
    )
    on_error: str = _fields.on_error(
        "A row longer than the model reads: fail, or skip it.", of="texts"
    )
    batch: int = _fields.batch_of_rows(
        "Rows at a time; fewer where memory is out, and of labels where rows are long."
    )
    slots: str = setting(
        "auto",
        "Figures by slot, the places that profile finds: auto (where rows have no targets), yes, "
        "no.",
        of="texts",
        choices=("auto", "yes", "no"),
        omit_default=True,
    )
    metrics: tuple[str, ...] = _fields.metrics(
        "One more: adjusted-r2,p=4 ... (docs/guide/evaluate.md)."
    )
    device: str = _fields.device()
    devices: str = _fields.devices("each with a part of the rows")
    compile: bool = setting(
        False, "Compile the model first: minutes. Did not pay on a CPU: measure.", of="texts"
    )
    against: str | None = _fields.against(swept=False)
    column: str | None = _fields.column(swept=False)
    name: str | None = _fields.name("Default: the model's and the split's.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
