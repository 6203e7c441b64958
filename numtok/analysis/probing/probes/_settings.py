"""Settings that several probes have."""

import math
from typing import Any

from numtok.declaration import setting
from numtok.errors import UsageError

LEAST = 3  # points


def end() -> Any:
    """Where a line of numbers begins, or ends."""

    def wrong(value: float) -> str | None:
        return None if math.isfinite(value) else "is not possible; a finite number is"

    return setting(None, refuse=wrong)


def points() -> Any:
    return setting(201, at_least=LEAST)


def check_ends(low: float | None, high: float | None) -> None:
    """Raise UsageError unless a line that has both ends goes up."""
    if low is not None and high is not None and not low < high:
        raise UsageError(f"--from {low:g} --to {high:g} is not possible: --from is less than --to")
