"""The training log, ``metrics.jsonl``. Imports no torch, because reports read it.

``--log tensorboard:DIR`` also writes the values as TensorBoard event files while training runs. A
resumed run hides the events of steps that it repeats.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from numtok import files
from numtok.errors import needing
from numtok.settings.train import TENSORBOARD
from numtok.store.draft import Draft
from numtok.stored_json import Natural, StoredLines, convert, reading

LOG_FILE = "metrics.jsonl"
EXACT = "exact"  # the fraction of exact answers; some schemes have none
Line = dict[str, str | int | float | None]


class Look(msgspec.Struct, frozen=True):
    """The metrics of a split, always with the loss, at a step and a number of trained tokens.

    None stands for a value that is not finite.
    """

    step: Natural
    tokens: Natural
    split: str
    figures: dict[str, float | None]


class EpochLosses(msgspec.Struct, frozen=True):
    """The mean losses of a table model after an epoch on one fold, in the head's units.

    None stands for a loss that is not finite, or that no row has.
    """

    fold: Natural
    epoch: Natural
    train: float | None
    validation: float | None


_LOG = StoredLines(name=LOG_FILE, kind=Line)


def read_log(folder: Path) -> list[Look]:
    """Read the log of a text model, in order; StoreError if the file is damaged."""
    looks = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            when = {key: line[key] for key in ("step", "tokens", "split") if key in line}
            figures = {key: value for key, value in line.items() if key not in when}
            looks.append(convert({**when, "figures": figures}, Look))
            if "loss" not in figures:
                raise ValueError("it has no loss")
    return looks


def is_log_of_texts(folder: Path) -> bool:
    """True if :func:`read_log` reads the log; table models have one line per epoch instead."""
    lines = _LOG.read(folder)
    return bool(lines) and "fold" not in lines[0]


def read_epochs(folder: Path) -> list[EpochLosses]:
    """Read the log of a table model, in order; StoreError if the file is damaged."""
    epochs = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            epochs.append(convert(line, EpochLosses))
    return epochs


Watch = Callable[[Line], None]


def check_tensorboard() -> Any:
    """Return PyTorch's event file writer; UsageError if the package is missing."""
    with needing(f"--log {TENSORBOARD}DIR", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


@contextmanager
def event_file(log: str | None, draft: Draft, step: int) -> Iterator[Watch]:
    """Open an event file in ``DIR/NAME@VERSION`` and yield a function that writes log lines to it.

    ``step`` is the last step of the checkpoint that the run resumes from. Writes nothing if ``log``
    is None. Raises StoreError if the folder cannot be written.
    """
    if log is None:
        yield lambda line: None
        return
    folder = Path(log.removeprefix(TENSORBOARD)) / draft.ref
    with files.reporting("write", folder):
        writer = check_tensorboard()(str(folder), purge_step=step + 1)

    def watch(line: Line) -> None:
        for name, value in line.items():
            if name not in ("step", "tokens", "split") and value is not None:
                writer.add_scalar(f"{line['split']}/{name}", value, line["step"])

    try:
        yield watch
    finally:
        writer.close()
