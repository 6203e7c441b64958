"""Settings of ``numtok predict``, which predicts unknown numbers, labels or answers."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError, meaningless
from numtok.setting_scope import refuse
from numtok.settings import _fields

#: Settings of models, which do not apply to baselines.
_OF_MODELS = (
    "text", "text_field", "fill", "decode", "point", "draws", "temperature", "top_k", "top_p",
    "pretrained",
)  # fmt: skip


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok predict``. Numbers are decoded as in ``numtok eval``.

    model
        REF of the model; with ``baseline``, of the data that the baseline is fitted to.
    baseline
        Name of a baseline that predicts instead of a model; None for a model.
    interval
        Probability of conformal prediction intervals; None for predictions without them. Intervals
        are calibrated on rows of the data that the model was trained on.
    fold
        Fold whose model makes the predictions (table models); None if there is only one fold.
    pretrained
        Pretrained model that computes the features of texts (models trained on ``numtok
        features``); None for the recorded folder or id.
    """

    model: str = setting(
        help="REF of a model; with --baseline, of a table or rendered records", argument=True
    )
    file: str | None = setting(
        None,
        "JSONL of texts (plain, .gz or .zst), or - for standard input; for models of tables and of "
        "records (trained with --target): CSV, Parquet or JSONL with their columns",
        argument=True,
    )
    _: KW_ONLY
    baseline: str | None = setting(
        None,
        "Predict with a baseline, fitted to the train split of the data: tfidf, boosted-text, "
        "tabular, tabicl, linear, boosted, tuned boosting, mean or median",
        metavar="NAME",
    )
    text: tuple[str, ...] = setting(
        (),
        "Text with [?], or the text field of a model trained with --text-field, instead of a file; "
        "repeatable",
        metavar="TEXT",
        may_be_empty=True,
        of="texts",
        replaces=("text_field",),
    )
    text_field: str | None = _fields.text_field(of="texts", shown_default="text")
    fill: str | None = _fields.fill(
        "How to fill in numbers: parallel (the default for masked models), left-to-right, or "
        "answers, written by autoregressive models at the end of the text"
    )
    decode: str = _fields.decode()
    point: str | None = _fields.point()
    draws: int = _fields.draws()
    interval: float | None = setting(
        None,
        "Add prediction intervals that contain this fraction of the true values, such as 0.9",
        metavar="P",
        above=0,
        below=1,
    )
    temperature: float = _fields.temperature()
    top_k: int = _fields.top_k()
    top_p: float = _fields.top_p()
    fold: int | None = setting(
        None, "Fold whose model predicts", metavar="K", of="tables", at_least=0
    )
    pretrained: str | None = setting(
        None,
        "Folder, id or GGUF file of the pretrained model of the features, if it moved",
        metavar="FOLDER_OR_ID",
        advanced=True,
        of="tables",
    )
    batch: int = _fields.batch_of_rows("Rows per batch; reduced if memory runs out")
    device: str = _fields.device()
    devices: str = _fields.devices("each predicts part of the rows")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.file is None) == (not self.text):
            raise UsageError("predict needs either FILE or --text. For standard input, FILE is -")
        if self.text and self.text_field is not None:
            raise meaningless("text-field", "--text")
        if self.baseline is not None:
            refuse(self, _OF_MODELS, "--baseline")
