"""``numtok.toml`` in the working folder: defaults for the options of the commands.

::

    store = "/data/artifacts"       # as --store

    [plugins]
    folders = ["my-schemes"]        # searched for schemes, text tokenizers, ...

    [encode]                        # one table a command, one key an option
    scheme = "p1000"
    on-error = "skip"

A flag wins over the environment (``NUMTOK_STORE`` and ``NUMTOK_THREADS`` only),
the environment over this file, this file over the built-in default. Relative
paths start at the file's folder. Whatever is not understood is an error.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numtok.errors import UsageError, unknown

FILE = "numtok.toml"


@dataclass(frozen=True)
class Config:
    """The file as read; ``commands`` maps a command's name to its table."""

    store: Path | None = None
    plugins: tuple[Path, ...] = ()
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)


def load(folder: Path) -> Config:
    """The configuration in ``folder``; an empty one where there is no file.

    The names of commands and options are not known here: the command line
    checks them. Raises UsageError for anything else that cannot be meant.
    """
    path = folder / FILE
    if not os.path.lexists(path):
        return Config()
    from numtok import documents  # most runs have no file, and help is shown sooner without

    data = documents.toml(documents.read(path, FILE), FILE)
    store = data.pop("store", None)
    if not (store is None or (isinstance(store, str) and store)):
        raise UsageError(f"{FILE}: store must be a path, got {store!r}")
    plugins = data.pop("plugins", {})
    for name, table in data.items():
        if not isinstance(table, dict):
            raise unknown(f"key in {FILE}", name, ["store"], "options go into a command's table")
    return Config(
        store=None if store is None else folder / store,
        plugins=tuple(folder / name for name in _folders(plugins)),
        commands=data,
    )


def threads() -> int | None:
    """``NUMTOK_THREADS``, the most threads or processes that a command may use; None if unset.

    Raises UsageError for what is no number of threads.
    """
    given = os.environ.get("NUMTOK_THREADS")
    if not given:
        return None
    count = int(given) if re.fullmatch("[0-9]{1,6}", given) else 0
    if count < 1:
        raise UsageError(f"NUMTOK_THREADS={given!r} is not possible; it is 1 or more")
    return count


def _folders(plugins: Any) -> list[str]:
    if not isinstance(plugins, dict):
        raise UsageError(f"{FILE}: plugins must be a table with the key folders, got {plugins!r}")
    for key in plugins:
        if key != "folders":
            raise unknown(f"key in [plugins] of {FILE}", key, ["folders"])
    folders = plugins.get("folders", [])
    if not isinstance(folders, list) or not all(isinstance(name, str) for name in folders):
        raise UsageError(f"{FILE}: folders in [plugins] must be a list of paths, got {folders!r}")
    return folders
