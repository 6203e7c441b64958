"""The command-line words that reproduce the settings of a command or a part."""

from typing import Any

from numtok.declaration import Setting, settings_in
from numtok.names import join_names
from numtok.setting_values import as_spec


def command_line(settings: Any, of: str | None = None, *, changed: bool = False) -> list[str]:
    """Return the command-line words that reproduce the settings of a command or a part.

    Defaults that depend on other settings must already be filled in. If ``of`` is ``texts`` or
    ``tables``, settings that only apply to the other kind are left out. If ``changed`` is true,
    settings with default values are left out.
    """
    words: list[str] = []
    for key, setting in settings_in(type(settings)).items():
        value = getattr(settings, key)
        may_omit = changed or setting.omit_default or setting.came_later
        omitted = may_omit and value == setting.default
        foreign = of is not None and setting.of not in (None, of)
        if setting.repeat and not omitted and not foreign:
            words += _words(setting, value)
    return words


def _words(setting: Setting, value: Any) -> list[str]:
    """Return the words that set a value, such as ``['--eggs', '3']``."""
    if value in (None, ()) or (setting.switch and value is False):
        return []
    values = value if isinstance(value, tuple) else (value,)
    flag = [] if setting.argument else [f"--{setting.flag}"]
    if setting.joined:
        values = (join_names(values),)
    if setting.switch:
        return flag
    texts = [
        as_spec(item).removesuffix(".0") if isinstance(item, float) else as_spec(item)
        for item in values
    ]
    return [word for text in texts for word in (*flag, text)]
