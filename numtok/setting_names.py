"""Names of settings: option names derived from fields, and current names of renamed settings."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from numtok.errors import UsageError

#: Function that receives notes on earlier names. If None, a FutureWarning is issued instead.
on_renamed: Callable[[str], None] | None = None
_noted: set[str] = set()


def note_renamed(old: str, new: str) -> None:
    """Report that a name has changed, as in ``--places is now --digit-positions``.

    The note is passed to :data:`on_renamed` or, if that is None, issued as a FutureWarning. The
    same note is issued only once per command.
    """
    note = f"{old} is now {new}"
    if note in _noted:
        return
    _noted.add(note)
    if on_renamed is None:
        warnings.warn(note, FutureWarning, stacklevel=3)
    else:
        on_renamed(note)


def forget_notes() -> None:
    """Forget which notes about renamed settings were issued, so that a new command issues them
    again."""
    _noted.clear()


def by_current_name(
    values: Mapping[str, Any], current: Callable[[str], str], where: str = ""
) -> dict[str, Any]:
    """Return values keyed by the current names of their settings. ``current`` maps a name to the
    current one.

    Raises UsageError if two names refer to the same setting; its message begins with ``where``.

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
    """Return the option name that is derived from a field name: ``on_error`` becomes
    ``on-error``."""
    return key.rstrip("_").replace("_", "-")
