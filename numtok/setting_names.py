"""Names of settings: from fields to options, and from earlier names to current ones."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from numtok.errors import UsageError

#: Receives the note on an earlier name; None: a FutureWarning.
on_renamed: Callable[[str], None] | None = None
_noted: set[str] = set()


def note_renamed(old: str, new: str) -> None:
    """Note once that a name has changed: ``--places is now --digit-positions``."""
    note = f"{old} is now {new}"
    if note in _noted:
        return
    _noted.add(note)
    if on_renamed is None:
        warnings.warn(note, FutureWarning, stacklevel=3)
    else:
        on_renamed(note)


def forget_notes() -> None:
    """Let every note on an earlier name appear again: a new command begins."""
    _noted.clear()


def by_current_name(
    values: Mapping[str, Any], current: Callable[[str], str], where: str = ""
) -> dict[str, Any]:
    """Return values by the current names of their settings.

    Raises UsageError if two names set the same setting; ``where`` begins the message.

    >>> by_current_name({"clip": 1.0}, {"clip": "grad-clip"}.__getitem__)
    {'grad-clip': 1.0}
    """
    names: dict[str, str] = {}
    for name in values:
        key = current(name)
        if key in names:
            raise UsageError(f"{where}{names[key]} and {name} set the same setting. Keep one")
        names[key] = name
    return {key: values[name] for key, name in names.items()}


def flag_named(key: str) -> str:
    """Return the option name of a field that declares none: ``on_error -> on-error``."""
    return key.rstrip("_").replace("_", "-")
