"""The store that functions read and write."""

import os
from pathlib import Path

from numtok.library.wording import check_type
from numtok.store.store import Store


def store_root(where: str | Path | None) -> Path:
    """The folder of a store: as given, or ``NUMTOK_STORE``, or ``artifacts``, as the command line
    has it without a ``numtok.toml``."""
    return Path(where or os.environ.get("NUMTOK_STORE") or "artifacts")


def open_store(where: str | Path | None, *, quiet: bool = True) -> Store:
    """The store there; unless quiet, notes for a waiting user go to standard error."""
    check_type("store", where, str | Path | None)
    root = store_root(where)
    return Store(root, _unsaid) if quiet else Store(root)


def _unsaid(note: str) -> None:
    """Nobody waits."""
