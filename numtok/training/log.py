"""Reading the training log, ``metrics.jsonl``, and writing TensorBoard event files.

With ``--log tensorboard:DIR``, the values of the log are also written as event files while training
runs. A resumed run hides the events of steps that it repeats.

This module does not import torch, because commands that only read reports use it.
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


class LoggedMetrics(msgspec.Struct, frozen=True):
    """One line in the log of a text model: the metrics of a split at one point during training.

    ``tokens`` is the number of tokens trained on so far. ``figures`` maps the name of each metric
    to its value, or to None if the value is not finite; it always contains ``loss``.
    """

    step: Natural
    tokens: Natural
    split: str
    figures: dict[str, float | None]


class EpochLosses(msgspec.Struct, frozen=True):
    """One line in the log of a table model: the mean losses of a fold after an epoch.

    Losses are in the units of the head's loss. A loss is None if it is not finite or cannot be
    computed.
    """

    fold: Natural
    epoch: Natural
    train: float | None
    validation: float | None


_LOG = StoredLines(name=LOG_FILE, kind=Line)


def read_log(folder: Path) -> list[LoggedMetrics]:
    """Return the lines in the log of a text model, in order.

    Raises StoreError if the file is damaged.
    """
    entries = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            when = {key: line[key] for key in ("step", "tokens", "split") if key in line}
            figures = {key: value for key, value in line.items() if key not in when}
            entries.append(convert({**when, "figures": figures}, LoggedMetrics))
            if "loss" not in figures:
                raise ValueError("it has no loss")
    return entries


def is_log_of_texts(folder: Path) -> bool:
    """Return whether the log in a model's folder has the format of text models.

    Such a log is read by :func:`read_log`, and the log of a table model by :func:`read_epochs`.
    """
    lines = _LOG.read(folder)
    return bool(lines) and "fold" not in lines[0]


def read_epochs(folder: Path) -> list[EpochLosses]:
    """Return the lines in the log of a table model, in order.

    Raises StoreError if the file is damaged.
    """
    epochs = []
    for number, line in enumerate(_LOG.read(folder), 1):
        with reading(folder / LOG_FILE, where=f"line {number}: "):
            epochs.append(convert(line, EpochLosses))
    return epochs


Watch = Callable[[Line], None]


def check_tensorboard() -> Any:
    """Return the class that writes event files, PyTorch's ``SummaryWriter``.

    Raises UsageError if the package ``tensorboard`` is not installed.
    """
    with needing(f"--log {TENSORBOARD}DIR", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


@contextmanager
def event_file(log: str | None, draft: Draft, step: int) -> Iterator[Watch]:
    """Context manager that opens an event file and yields a function that writes log lines to it.

    log
        The value of ``--log``, ``tensorboard:DIR``. If it is None, nothing is written.
    draft
        Draft of the model that is trained. The file is written to ``DIR/NAME@VERSION``.
    step
        Last step of the checkpoint that the run resumes from; 0 for a new run.

    Raises StoreError if the folder cannot be written.
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
