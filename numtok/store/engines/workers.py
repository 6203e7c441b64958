"""How many processes a command uses."""

import os

from numtok.config import threads


def workers_for(size: int, asked: int | None, least: int) -> int:
    """As asked for; else one a core, but none for less than ``least``, which one process is done
    with before others have started."""
    if asked is not None:
        return asked
    most = threads() or os.cpu_count() or 1  # also says what is wrong with NUMTOK_THREADS
    return most if size > least else 1
