"""Options that several stages have."""

import os

from numtok.config import threads
from numtok.errors import UsageError
from numtok.records import row_type
from numtok.store.artifact import NAME

_MOST_LINE = 1 << 30  # bytes, the most that --max-line allows


def check_name(name: str | None) -> None:
    """Refuse a ``--name`` that no artifact can have; None is the default."""
    if name is not None and not NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} cannot be used; allowed are lower-case letters, digits and "
            "._- after a first letter or digit"
        )


def check_workers(workers: int | None) -> None:
    """Refuse a ``--workers`` that is no number of processes; None is the default."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers} is not possible; at least 1 is needed")


def check_reading(text_field: str, on_error: str, workers: int | None, max_line: int) -> None:
    """Refuse options of a stage that reads rows of data."""
    row_type(text_field)
    if on_error not in ("fail", "skip"):
        raise UsageError(f"--on-error {on_error!r} is not possible; allowed are fail and skip")
    check_workers(workers)
    if not 1 <= max_line <= _MOST_LINE:
        raise UsageError(
            f"--max-line {max_line} is not possible; allowed are 1 to {_MOST_LINE} bytes"
        )


def workers_for(size: int, asked: int | None, least: int) -> int:
    """As asked for; else one a core, but none for less than ``least``, which one process is done
    with before others have started."""
    if asked is not None:
        return asked
    most = threads() or os.cpu_count() or 1  # also says what is wrong with NUMTOK_THREADS
    return most if size > least else 1
