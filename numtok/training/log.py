"""``metrics.jsonl``: what training logs. No torch: reports read it too.

``--log tensorboard:DIR`` writes the same values as event files of TensorBoard, to watch runs by;
``metrics.jsonl`` stays the record. Values are written as they come, so a resumed run hides those of
the steps that it trains again.
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
    """The figures of a split by name, the loss always among them, at a step and after so many
    tokens; None is not finite."""

    step: Natural
    tokens: Natural
    split: str
    figures: dict[str, float | None]


class EpochLosses(msgspec.Struct, frozen=True):
    """The mean losses of a model of a table after an epoch, on one fold, in the head's units; None
    is not finite, or of no rows."""

    fold: Natural
    epoch: Natural
    train: float | None
    validation: float | None


_LOG = StoredLines(name=LOG_FILE, kind=Line)


def read_log(folder: Path) -> list[Look]:
    """What a model of texts wrote down, in order; StoreError for a damaged file."""
    looks = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            place = {key: line[key] for key in ("step", "tokens", "split") if key in line}
            figures = {key: value for key, value in line.items() if key not in place}
            looks.append(convert({**place, "figures": figures}, Look))
            if "loss" not in figures:
                raise ValueError("it has no loss")
    return looks


def is_log_of_texts(folder: Path) -> bool:
    """Whether :func:`read_log` reads the log: that of a model of tables has a line an epoch."""
    lines = _LOG.read(folder)
    return bool(lines) and "fold" not in lines[0]


def read_epochs(folder: Path) -> list[EpochLosses]:
    """What a model of a table wrote down, in order; StoreError for a damaged file."""
    epochs = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            epochs.append(convert(line, EpochLosses))
    return epochs


Watch = Callable[[Line], None]


def check_tensorboard() -> Any:
    """PyTorch's writer of event files; UsageError where the package is missing."""
    with needing(f"--log {TENSORBOARD}DIR", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


@contextmanager
def event_file(log: str | None, draft: Draft, step: int) -> Iterator[Watch]:
    """What is given each line of a run behind ``step``; its file lies in ``DIR/NAME@VERSION``.

    Nothing is written for None. Raises StoreError where it cannot be.
    """
    if log is None:
        yield lambda line: None
        return
    folder = Path(log.removeprefix(TENSORBOARD)) / draft.ref
    with files.reporting("write", folder):
        writer = check_tensorboard()(str(folder), purge_step=step + 1)

    def watch(line: Line) -> None:
        place = {key: line[key] for key in ("step", "tokens", "split")}
        for name, value in line.items():
            if name not in place and value is not None:
                writer.add_scalar(f"{place['split']}/{name}", value, place["step"])

    try:
        yield watch
    finally:
        writer.close()
