"""Settings of ``numtok train``, which trains a model on encoded data or on a table."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields

BUDGETS = ("steps", "tokens", "minutes")  # at most one of them is set
TENSORBOARD = "tensorboard:"  # prefix of the folder for event files
_data = partial(setting, section="Data")
_model = partial(setting, None, section="Model")
_part = partial(_model, counts="experiment")
_budget = partial(setting, section="Budget")
_length = partial(_budget, None, of="texts", above=0, replaces=BUDGETS)  # one of BUDGETS
_optimizer = partial(setting, section="Optimizer", counts="experiment")
_rare = partial(_optimizer, of="texts", advanced=True)
_devices = partial(setting, section="Devices", of="texts")
_run = partial(_devices, swept=False, repeat=False, advanced=True)  # does not change results


def _wrong_log(value: str) -> str | None:
    if value.startswith(TENSORBOARD) and value != TENSORBOARD:
        return None
    return f"must be {TENSORBOARD}DIR"


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok train``; at most one of ``steps``, ``tokens`` and ``minutes`` is set.

    Settings that are None have these defaults:

    preset, embedder, head
        If ``init`` is set, the preset, embedder and head of the model that it names. Otherwise,
        ``nano`` (``mlp`` for tables), and the embedder and head of the scheme (no head if labels
        are learned).
    objective
        ``mlm:targets`` if rows have targets, ``mlm`` otherwise.
    learning_rate
        The rate of the preset, or a lower one if the embedder needs it.
    warmup
        0.05, or a larger fraction if the embedder needs it.
    fold
        All folds of the table.
    rows
        All rows of the train split. If fewer rows are requested, they are chosen with ``seed``.
    """

    data: str = setting(
        help="REF of encoded data or a table; or a table file", argument=True, swept=False
    )
    _: KW_ONLY
    preset: str | None = _part(
        "Model: nano, small, gpt2, hf:ID, bigru, mlp, ...; or nano,layers=2",
        metavar="SPEC",
        shown_default="nano; mlp for tables",
    )
    target: str | None = _data(
        None,
        "Column to predict in a table file",
        metavar="COLUMN",
        single=True,
        swept=False,
        repeat=False,
    )
    fold: int | None = _data(
        None, "Fold to train on", metavar="K", of="tables", at_least=0, shown_default="all"
    )
    rows: int | None = _data(
        None, "Number of training rows", of="tables", at_least=2, shown_default="all"
    )
    validation: float = _data(
        0.1, "Held-out fraction", metavar="FRACTION", of="tables", above=0, below=1
    )
    objective: str | None = _part(
        "Objective: mlm:targets, mlm:numbers, ar, classify, ...",
        of="texts",
        registry="objectives",
        shown_default="depends on the data",
    )
    embedder: str | None = _part(
        "Number embedder: lookup, scaled, fourier, bits, ...",
        of="texts",
        registry="embedders",
        shown_default="depends on the scheme",
    )
    head: str | None = _part(
        "Output head: scalar, bits, mdn:5, ...",
        registry="heads",
        shown_default="depends on the scheme; pointwise for tables",
    )
    places: str | None = _part(
        "Digit positions: abacus or coupling",
        flag="digit-positions",
        formerly=("places",),
        of="texts",
        registry="places",
        came_later=True,
    )
    normalize: str | None = _model(
        "Target normalizer",
        of="tables",
        registry="normalizers",
        shown_default="depends on the head",
    )
    init: str | None = _model(
        "Initialize from this model: weights, preset, embedder and head",
        flag="init-from",
        formerly=("init",),
        metavar="MODEL",
        of="texts",
        swept=False,
    )
    steps: int | None = _length("Number of training steps")
    tokens: int | None = _length("Number of training tokens")
    minutes: float | None = _length(
        "Training time without validation", metavar="M", below=math.inf, shown_default="5"
    )
    epochs: int = _budget(300, "Maximum number of epochs", of="tables", at_least=1)
    patience: int = _budget(
        5, "Early-stopping patience in epochs; 0 disables it", of="tables", at_least=0
    )
    batch: int = _optimizer(128, "Rows per step", metavar="ROWS", above=0)
    learning_rate: float | None = _optimizer(
        None,
        "Peak learning rate",
        flag="lr",
        aliases=("learning-rate",),
        shown_default="depends on the preset, at most 2e-4 for fone; 5e-4 for tables",
        metavar="RATE",
        above=0,
        below=1,
    )
    final_rate: float = _rare(
        0.0, "Final learning rate", flag="lr-end", metavar="RATE", at_least=0, came_later=True
    )
    warmup: float | None = _optimizer(
        None,
        "Warm-up, as a fraction of the steps",
        shown_default="0.05; 0.2 for fone",
        metavar="FRACTION",
        of="texts",
        at_least=0,
        below=1,
    )
    weight_decay: float | None = _optimizer(
        None,
        "Weight decay",
        shown_default="0.01; 0 for tables",
        metavar="W",
        at_least=0,
        below=math.inf,
    )
    clip: float = _rare(
        1.0,
        "Maximum gradient norm; 0 disables clipping",
        flag="grad-clip",
        formerly=("clip",),
        metavar="NORM",
        at_least=0,
    )
    curriculum: str | None = _rare(
        None, "TOML file of training phases; needs --steps", metavar="FILE", counts=None
    )
    seed: int = _optimizer(
        0, "Seed for weights, row order and masks", metavar="S", counts="version"
    )
    device: str = _fields.device(section="Devices", counts="version")
    devices: str = _fields.devices(
        "each gets part of the batch, or of the folds", section="Devices"
    )
    shard: bool = _run(False, "Shard weights across devices", flag="fsdp", formerly=("shard",))
    precision: str = _devices(
        "auto",
        "auto, float32 or bfloat16",
        metavar="TYPE",
        choices=("auto", "float32", "bfloat16"),
        counts="experiment",
    )
    accumulate: int = _devices(
        1,
        "Gradient accumulation steps",
        aliases=("gradient-accumulation",),
        advanced=True,
        at_least=1,
        counts="version",
        came_later=True,
    )
    recompute: bool = _devices(
        False,
        "Use gradient checkpointing",
        aliases=("gradient-checkpointing",),
        advanced=True,
        repeat=False,
    )
    compile: bool = _devices(
        False, "Use torch.compile", advanced=True, counts="version", came_later=True
    )
    batch_workers: int = _run(0, "Data-loading threads", at_least=0)
    checkpoint_steps: int | None = _run(
        None, "Checkpoint interval", flag="checkpoint-every", above=0, shown_default="1 minute"
    )
    profile: Path | None = _run(  # noqa: RUF009
        None, "Write a Chrome trace of 5 steps", flag="trace", formerly=("profile",)
    )
    log: str | None = _run(
        None,
        "Also write TensorBoard event files",
        section=None,
        metavar="tensorboard:DIR",
        refuse=_wrong_log,
    )
    name: str | None = _fields.name("DATA-PRESET or -HEAD")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [key for key in BUDGETS if getattr(self, key) is not None]
        if len(given) > 1:
            raise UsageError(
                f"--{given[0]} and --{given[1]} cannot be combined. "
                "Choose one of --steps, --tokens and --minutes"
            )
        if self.accumulate > self.batch:
            raise self.error("accumulate", f"must be from 1 to --batch, {self.batch}")

    @property
    def budget(self) -> dict[str, float]:
        """Training budget as ``{unit: amount}``; ``{"minutes": 5.0}`` if none is set."""
        for key in BUDGETS:
            if (value := getattr(self, key)) is not None:
                return {key: value}
        return {"minutes": 5.0}
