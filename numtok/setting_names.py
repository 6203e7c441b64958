"""Names of settings: earlier names, and names of options and Python arguments in messages."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numtok.declaration import Setting, settings_in
from numtok.errors import UsageError

#: Function that receives notes on earlier names. If None, a FutureWarning is issued instead.
on_renamed: Callable[[str], None] | None = None
_noted: set[str] = set()
#: In a message: a whole command, up to punctuation, or an option outside of commands.
_COMMAND_OR_OPTION = re.compile(r"numtok [a-z]+(?: [^\s`,;)]*[^\s`,;).])*|--([a-z][a-z-]*)")


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


def key_of(settings: Iterable[Setting], name: str, *, as_argument: bool = False) -> str | None:
    """Return the field of the setting that a name refers to, or None if the name is unknown.

    The name may be a field name, an option name, an alias or an earlier name. For an earlier name,
    a note is printed with the current option or, if ``as_argument`` is true, with the current
    Python argument.
    """
    spelled = name.replace("_", "-")
    settings = list(settings)
    for setting in settings:
        if spelled in (setting.flag, *setting.aliases) or (
            name == setting.name and spelled not in setting.formerly
        ):
            return setting.name
    for setting in settings:
        if spelled in setting.formerly:
            note_renamed(name, setting.argument_name if as_argument else setting.flag)
            return setting.name
    return None


def in_python(message: str, settings: type | None = None) -> str:
    """Return a message with each option replaced by the Python argument for the same setting.

    For an option that is not in ``settings``, the argument is the option's name with underscores.
    Options within a command are kept.

    >>> in_python("--text-field must be a name. Leave out --text-tokenizer")
    'text_field must be a name. Leave out text_tokenizer'
    >>> in_python("See numtok encode --help, or drop --scheme")
    'See numtok encode --help, or drop scheme'
    """
    declared = {} if settings is None else settings_in(settings, learned=True)
    names = {setting.flag: setting.argument_name for setting in declared.values()}

    def replaced(match: re.Match[str]) -> str:
        option = match[1]
        return match[0] if option is None else names.get(option, option.replace("-", "_"))

    return _COMMAND_OR_OPTION.sub(replaced, message)
