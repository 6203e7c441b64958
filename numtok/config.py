"""``numtok.toml`` in the working folder: defaults for command options.

::

    store = "/data/artifacts"       # as --store

    [plugins]
    folders = ["my-schemes"]        # searched for schemes, text tokenizers, ...

    [encode]                        # one table per command, one key per option
    scheme = "p1000"
    on-error = "skip"

Options on the command line take precedence over the environment (only ``NUMTOK_STORE`` and
``NUMTOK_THREADS``), the environment over this file, and this file over built-in defaults. Paths are
relative to the file's folder. Unknown keys are errors.
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
    """Content of ``numtok.toml``. ``commands`` maps each command's name to its table of options."""

    store: Path | None = None
    plugins: tuple[Path, ...] = ()
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)


def load(folder: Path) -> Config:
    """Read ``numtok.toml`` in ``folder``. Without this file, the configuration is empty.

    Command and option names are not checked here; the command line checks them. Raises UsageError
    if the file is otherwise invalid.
    """
    path = folder / FILE
    if not os.path.lexists(path):
        return Config()
    from numtok import documents  # imported late: most runs have no file, and help starts faster

    # Numbers with a point stay text, because 1.00 has two decimals.
    data = documents.toml(documents.read(path, FILE), FILE, str)
    store = data.pop("store", None)
    if not (store is None or (isinstance(store, str) and store)):
        raise UsageError(f"{FILE}: store must be a path (got {store!r})")
    plugins = data.pop("plugins", {})
    for name, table in data.items():
        if not isinstance(table, dict):
            raise unknown(
                f"key in {FILE}",
                name,
                ["store"],
                "Put options into the table of a command, such as [train]",
            )
    return Config(
        store=None if store is None else folder / store,
        plugins=tuple(folder / name for name in _folders(plugins)),
        commands=data,
    )


def threads() -> int | None:
    """Return the maximum number of threads or processes set by ``NUMTOK_THREADS``; None if it is
    unset.

    Raises UsageError unless the value is an integer of at least 1.
    """
    setting = os.environ.get("NUMTOK_THREADS")
    if not setting:
        return None
    count = int(setting) if re.fullmatch("[0-9]{1,6}", setting) else 0
    if count < 1:
        raise UsageError(f"NUMTOK_THREADS must be a whole number of at least 1 (got {setting!r})")
    return count


def _folders(plugins: Any) -> list[str]:
    if not isinstance(plugins, dict):
        raise UsageError(f"{FILE}: plugins must be a table with the key folders (got {plugins!r})")
    for key in plugins:
        if key != "folders":
            raise unknown(f"key in [plugins] of {FILE}", key, ["folders"])
    folders = plugins.get("folders", [])
    if not isinstance(folders, list) or not all(isinstance(name, str) and name for name in folders):
        raise UsageError(f"{FILE}: folders in [plugins] must be a list of paths (got {folders!r})")
    return folders
