"""``metrics.jsonl``: what was logged while a model learnt. No torch: reports read it, too."""

from pathlib import Path

import msgspec

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
