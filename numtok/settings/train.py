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
_data, _model, _budget, _optimiser, _devices = (
    partial(setting, section=section)
    for section in ("Data", "Model", "Budget", "Optimiser", "Devices")
)


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
        metavar="DATA",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    preset: str | None = _model(
        None,
        "nano, micro, small, xval, gpt2; nano,layers=2 ... A pretrained model: "
        "hf:FOLDER_OR_ID,tune=full|lora|heads. Labels: bigru, too. Tables: "
        "mlp,layers=3,width=256. Default: nano or mlp.",
        metavar="SPEC",
        counts="experiment",
    )
    target: str | None = _data(
        None, "Of a file: what is predicted.", metavar="COLUMN", swept=False, repeat=False
    )
    fold: int | None = _data(None, "One fold. Default: all.", metavar="K", of="tables", at_least=0)
    rows: int | None = _data(
        None,
        "So many of the train split, 2 at least. Default: all.",
        metavar="N",
        of="tables",
        at_least=2,
    )
    validation: float = _data(
        0.1, "Held back where no split is for that.", metavar="SHARE", of="tables", above=0, below=1
    )
    objective: str | None = _model(
        None,
        "mlm:targets, mlm:numbers,rate=0.3, ar[:all|answer], numvalue, classify ... Default: "
        "mlm:targets where rows have targets, else mlm.",
        metavar="SPEC",
        of="texts",
        registry="objectives",
        counts="experiment",
    )
    embedder: str | None = _model(
        None,
        "lookup, scaled, fourier, fone, bits, numgpt, dice, numvalue[:rnn|mlp]. Default: the "
        "scheme's.",
        metavar="SPEC",
        of="texts",
        registry="embedders",
        counts="experiment",
    )
    head: str | None = _model(
        None,
        "token, scalar, fone, bits, numgpt, pointwise, riemann:256, mdn:5, decoder:ud ... Default: "
        "the scheme's; tables: pointwise.",
        metavar="SPEC",
        registry="heads",
        counts="experiment",
    )
    places: str | None = _model(
        None,
        "abacus, coupling: the place of each digit in its number is told. Default: it is not.",
        metavar="SPEC",
        of="texts",
        registry="places",
        counts="experiment",
        came_later=True,
    )
    normalize: str | None = _model(
        None,
        "Of the target. Default: the head's.",
        metavar="SPEC",
        of="tables",
        registry="normalizers",
    )
    init: str | None = _model(
        None,
        "Begin with the weights of this model; classify: its trunk's. Preset, embedder and head "
        "are its own, too.",
        metavar="MODEL",
        of="texts",
        swept=False,
    )
    steps: int | None = _budget(
        None, "Train for so many steps.", metavar="N", of="texts", above=0, replaces=BUDGETS
    )
    tokens: int | None = _budget(
        None,
        "Train until so many tokens went in.",
        metavar="N",
        of="texts",
        above=0,
        replaces=BUDGETS,
    )
    minutes: float | None = _budget(
        None,
        "Train about so long: measured, then frozen to steps; looks at the validation split come "
        "on top. Default: 5.",
        metavar="M",
        of="texts",
        above=0,
        below=math.inf,
        replaces=BUDGETS,
    )
    epochs: int = _budget(300, "At most.", metavar="N", of="tables", at_least=1)
    patience: int = _budget(
        5, "Epochs without a better loss. 0: never stop.", metavar="N", of="tables", at_least=0
    )
    batch: int = _optimiser(128, "Rows a step.", metavar="ROWS", above=0, counts="experiment")
    learning_rate: float | None = _optimiser(
        None,
        "Learning rate. Default: the preset's, with fone 2e-4 at most; tables: 5e-4.",
        flag="lr",
        metavar="RATE",
        above=0,
        below=1,
        counts="experiment",
    )
    final_rate: float = _optimiser(
        0.0,
        "To which the learning rate falls.",
        flag="lr-end",
        metavar="RATE",
        of="texts",
        at_least=0,
        counts="experiment",
        came_later=True,
        omit_default=True,
    )
    warmup: float | None = _optimiser(
        None,
        "Of the steps; a cosine follows. Default: 0.05, with fone 0.2.",
        metavar="SHARE",
        of="texts",
        at_least=0,
        below=1,
        counts="experiment",
    )
    weight_decay: float | None = _optimiser(
        None,
        "Of matrices and embeddings. Default: 0.01; tables: 0, of all.",
        metavar="W",
        at_least=0,
        below=math.inf,
        counts="experiment",
    )
    clip: float = _optimiser(
        1.0,
        "Of the gradient; 0: none.",
        metavar="NORM",
        of="texts",
        at_least=0,
        counts="experiment",
    )
    curriculum: str | None = _optimiser(
        None, "Phases with rows of their own, in TOML; with --steps.", metavar="FILE", of="texts"
    )
    seed: int = _optimiser(0, "Of weights, order and masks.", metavar="S", counts="version")
    device: str = _fields.device(section="Devices", counts="version")
    devices: str = _fields.devices(
        "each with a part of every batch, of tables with folds of its own", section="Devices"
    )
    shard: bool = _devices(
        False,
        "A part of every weight on each device, for models that outgrow one.",
        of="texts",
        swept=False,
        repeat=False,
    )
    precision: str = _devices(
        "auto",
        "float32 or bfloat16. auto: bfloat16 where a GPU has it.",
        of="texts",
        choices=("auto", "float32", "bfloat16"),
        counts="experiment",
    )
    accumulate: int = _devices(
        1,
        "Learn a batch in N parts: the same step, less memory.",
        metavar="N",
        of="texts",
        at_least=1,
        counts="version",
        came_later=True,
        omit_default=True,
    )
    recompute: bool = _devices(
        False, "Less memory for long rows, and a third more work.", of="texts", repeat=False
    )
    compile: bool = _devices(
        False,
        "Compile the model first: minutes; for long runs on a GPU.",
        of="texts",
        counts="version",
        came_later=True,
        omit_default=True,
    )
    batch_workers: int = _devices(
        0,
        "Threads that prepare batches.",
        metavar="N",
        of="texts",
        at_least=0,
        swept=False,
        repeat=False,
    )
    checkpoint_steps: int | None = _devices(
        None,
        "Default: once a minute.",
        flag="checkpoint-every",
        metavar="STEPS",
        of="texts",
        above=0,
        swept=False,
        repeat=False,
    )
    profile: Path | None = _devices(  # noqa: RUF009
        None,
        "Write a Chrome trace of 5 steps, print their costs.",
        metavar="FILE",
        of="texts",
        swept=False,
        repeat=False,
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
