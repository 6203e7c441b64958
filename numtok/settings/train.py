"""``numtok train``: encoded data or a table -> a model."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields

BUDGETS = ("steps", "tokens", "minutes")  # of which one says how long
TENSORBOARD = "tensorboard:"  # where event files of a run go to, behind it the folder
_data = partial(setting, section="Data")
_model = partial(setting, None, section="Model")
_part = partial(_model, counts="experiment")  # of the model
_budget = partial(setting, section="Budget")
_length = partial(_budget, None, of="texts", above=0, replaces=BUDGETS)  # one of BUDGETS
_optimizer = partial(setting, section="Optimiser", counts="experiment")
_devices = partial(setting, section="Devices", of="texts")
_run = partial(_devices, swept=False, repeat=False)  # changes no result


def _wrong_log(value: str) -> str | None:
    if value.startswith(TENSORBOARD) and value != TENSORBOARD:
        return None
    return f"is not possible; it is {TENSORBOARD}DIR"


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok train`` was asked for; of ``steps``, ``tokens`` and ``minutes`` one at most.

    Of texts, none of ``preset``, ``embedder`` and ``head`` means that of ``init``, or without one
    ``nano`` and the scheme's own (no head where labels are learnt); of ``objective``
    ``mlm:targets`` where rows have targets and ``mlm`` otherwise; of ``learning_rate`` the
    preset's, or less where the embedder bears less, and of ``warmup`` what that needs. Of tables,
    ``fold`` None is all folds, and ``rows`` are of the train split at most, drawn by the seed.
    """

    data: str = setting(
        help="REF of encoded data or of a table; or a table's FILE, --target.",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    preset: str | None = _part(
        "nano, micro, small, xval, gpt2; nano,layers=2 ... A pretrained model: "
        "hf:FOLDER_OR_ID,tune=full|lora|heads. Labels: bigru, too. Tables: "
        "mlp,layers=3,width=256. Default: nano or mlp.",
        metavar="SPEC",
    )
    target: str | None = _data(
        None, "Of a file: what is predicted.", metavar="COLUMN", swept=False, repeat=False
    )
    fold: int | None = _data(None, "One fold. Default: all.", metavar="K", of="tables", at_least=0)
    rows: int | None = _data(
        None, "So many of the train split, 2 at least. Default: all.", of="tables", at_least=2
    )
    validation: float = _data(
        0.1, "Held back where no split is for that.", metavar="SHARE", of="tables", above=0, below=1
    )
    objective: str | None = _part(
        "mlm:targets, mlm:numbers,rate=0.3, ar[:all|answer], numvalue, classify ... Default: "
        "mlm:targets where rows have targets, else mlm.",
        of="texts",
        registry="objectives",
    )
    embedder: str | None = _part(
        "lookup, scaled, fourier, fone, bits, numgpt, dice, numvalue[:rnn|mlp]. Default: the "
        "scheme's.",
        of="texts",
        registry="embedders",
    )
    head: str | None = _part(
        "token, scalar, fone, bits, numgpt, pointwise, riemann:256, mdn:5, decoder:ud ... Default: "
        "the scheme's; tables: pointwise.",
        registry="heads",
    )
    places: str | None = _part(
        "abacus, coupling: the place of each digit in its number is told. Default: it is not.",
        of="texts",
        registry="places",
        came_later=True,
    )
    normalize: str | None = _model(
        "Of the target. Default: the head's.", of="tables", registry="normalizers"
    )
    init: str | None = _model(
        "Begin with the weights of this model; classify: its trunk's. Preset, embedder and head "
        "are its own, too.",
        metavar="MODEL",
        of="texts",
        swept=False,
    )
    steps: int | None = _length("Train for so many steps.")
    tokens: int | None = _length("Train until so many tokens went in.")
    minutes: float | None = _length(
        "Train about so long: measured, then frozen to steps; looks at the validation split come "
        "on top. Default: 5.",
        metavar="M",
        below=math.inf,
    )
    epochs: int = _budget(300, "At most.", of="tables", at_least=1)
    patience: int = _budget(
        5, "Epochs without a better loss. 0: never stop.", of="tables", at_least=0
    )
    batch: int = _optimizer(128, "Rows a step.", metavar="ROWS", above=0)
    learning_rate: float | None = _optimizer(
        None,
        "Learning rate. Default: the preset's, with fone 2e-4 at most; tables: 5e-4.",
        flag="lr",
        metavar="RATE",
        above=0,
        below=1,
    )
    final_rate: float = _optimizer(
        0.0,
        "To which the learning rate falls.",
        flag="lr-end",
        metavar="RATE",
        of="texts",
        at_least=0,
        came_later=True,
    )
    warmup: float | None = _optimizer(
        None,
        "Of the steps; a cosine follows. Default: 0.05, with fone 0.2.",
        metavar="SHARE",
        of="texts",
        at_least=0,
        below=1,
    )
    weight_decay: float | None = _optimizer(
        None,
        "Of matrices and embeddings. Default: 0.01; tables: 0, of all.",
        metavar="W",
        at_least=0,
        below=math.inf,
    )
    clip: float = _optimizer(
        1.0, "Of the gradient; 0: none.", metavar="NORM", of="texts", at_least=0
    )
    curriculum: str | None = setting(
        None,
        "Phases with rows of their own, in TOML; with --steps.",
        metavar="FILE",
        of="texts",
        section="Optimiser",
    )
    seed: int = setting(
        0, "Of weights, order and masks.", metavar="S", counts="version", section="Optimiser"
    )
    device: str = _fields.device(section="Devices", counts="version")
    devices: str = _fields.devices(
        "each with a part of every batch, of tables with folds of its own", section="Devices"
    )
    shard: bool = _run(False, "A part of every weight on each device, for models that outgrow one.")
    precision: str = _devices(
        "auto",
        "float32 or bfloat16. auto: bfloat16 where a GPU has it.",
        choices=("auto", "float32", "bfloat16"),
        counts="experiment",
    )
    accumulate: int = _devices(
        1,
        "Learn a batch in N parts: the same step, less memory.",
        at_least=1,
        counts="version",
        came_later=True,
    )
    recompute: bool = _devices(
        False, "Less memory for long rows, and a third more work.", repeat=False
    )
    compile: bool = _devices(
        False,
        "Compile the model first: minutes; for long runs on a GPU.",
        counts="version",
        came_later=True,
    )
    batch_workers: int = _run(0, "Threads that prepare batches.", at_least=0)
    checkpoint_steps: int | None = _run(
        None, "Default: once a minute.", flag="checkpoint-every", metavar="STEPS", above=0
    )
    profile: Path | None = _run(  # noqa: RUF009
        None, "Write a Chrome trace of 5 steps, print their costs."
    )
    log: str | None = setting(
        None,
        "Also write what is logged as event files: tensorboard:DIR.",
        metavar="tensorboard:DIR",
        of="texts",
        refuse=_wrong_log,
        swept=False,
        repeat=False,
    )
    name: str | None = _fields.name("Default: the data's and the preset's; tables: the head's.")
    restart: bool = _fields.restart()
    force: bool = _fields.force()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [key for key in BUDGETS if getattr(self, key) is not None]
        if len(given) > 1:
            raise UsageError(
                f"--{given[0]} and --{given[1]} are two budgets; give one of --steps, --tokens "
                "and --minutes"
            )
        if self.curriculum is not None and self.steps is None:
            raise UsageError(
                "--curriculum divides the steps of a run among its phases; give --steps"
            )
        if self.accumulate > self.batch:
            raise self.error(
                "accumulate", f"is not possible; it is from 1 to --batch ({self.batch})"
            )

    @property
    def budget(self) -> dict[str, float]:
        """The budget asked for, by its unit; 5 minutes unless said."""
        for key in BUDGETS:
            if (value := getattr(self, key)) is not None:
                return {key: value}
        return {"minutes": 5.0}
