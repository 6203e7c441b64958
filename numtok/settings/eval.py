"""``numtok eval``: evaluate a model on a split of data."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok eval``.

    data
        None stands for the training data.
    fill
        For masked models ``parallel`` (also None) or ``left-to-right``. For autoregressive models
        ``answers``: each row's answer is generated as text.
    decode
        ``constrained`` by the scheme's grammar, or ``free``.
    point
        None stands for ``mode``, or for ``median`` with table models.
    batch
        Not a setting of the report: it only affects the last bits of float32.
    """

    model: str = setting(help="REF of a model.", argument=True, swept=False)
    data: str | None = setting(
        None,
        "REF of data encoded like the training data, or of a table with the same columns. Default: "
        "the training data.",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    split: str = setting("test", "Split to predict.", metavar="NAME")
    fill: str | None = _fields.fill(
        "Order of filling. Masked models: parallel (default) or left-to-right. Autoregressive "
        "models: answers are generated as text and compared as a whole."
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
        "What to do with rows longer than the model's context: fail or skip.", of="texts"
    )
    batch: int = _fields.batch_of_rows(
        "Rows per batch; reduced if memory runs out, and for labels if rows are long."
    )
    slots: str = setting(
        "auto",
        "Report metrics per slot, as found by profile: auto (if rows have no targets), yes or no.",
        of="texts",
        choices=("auto", "yes", "no"),
        omit_default=True,
    )
    metrics: tuple[str, ...] = _fields.metrics(
        "Additional metric, such as adjusted-r2,p=4. Repeatable."
    )
    device: str = _fields.device()
    devices: str = _fields.devices("each with a part of the rows")
    compile: bool = setting(False, "Compile the model first, which takes minutes.", of="texts")
    against: str | None = _fields.against(swept=False)
    column: str | None = _fields.column(swept=False)
    all_metrics: bool = setting(
        False, "Show all metrics, not only eight of them.", swept=False, repeat=False
    )
    name: str | None = _fields.name("Default: the model's and the split's.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.check_column(self)
