"""Options of commands that read rows of data."""

from numtok.errors import UsageError
from numtok.records import row_type
from numtok.store.engines.workers import check_workers

_MOST_LINE = 1 << 30  # bytes, the most that --max-line allows


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
