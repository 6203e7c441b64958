"""The tables of ``numtok.toml``, as defaults of command options."""

from pathlib import Path
from typing import Any

import typer

from numtok import setting_names
from numtok.cli._commands import command_module, command_names, current_name
from numtok.cli._options import options_of_kinds, settings_class
from numtok.config import FILE, Config, load
from numtok.declaration import Setting
from numtok.errors import NumtokError, UsageError, unknown
from numtok.names import join_names
from numtok.plugins import add_plugin_folders
from numtok.setting_values import shown_value, with_value

DOCTOR = "doctor"  # the command that reports an error in numtok.toml, and runs in spite of it


def read_config() -> Config:
    """Read ``numtok.toml`` in the working folder, and add its plugin folders."""
    config = load(Path())
    add_plugin_folders(config.plugins)
    return config


def problem_in_file(context: typer.Context) -> str:
    """Return the error in ``numtok.toml``, or an empty string."""
    try:
        option_defaults(context.find_root().command, DOCTOR, read_config())
    except NumtokError as error:
        return str(error)
    return ""


def option_defaults(group: Any, called: str | None, config: Config) -> dict[str, Any]:
    """Return the tables of numtok.toml, keyed by parameter names instead of option names.

    ``group`` is typer's object for all commands, and ``called`` the command that is called.
    """
    commands: dict[str, Any] = group.commands
    defaults: dict[str, dict[str, Any]] = {}
    given: dict[str, str] = {}
    for given_name, table in config.commands.items():
        name = current_name(given_name, f"[{given_name}] in {FILE}", "[{name}]")
        if (other := given.setdefault(name, given_name)) != given_name:
            raise UsageError(f"{FILE}: [{other}] and [{given_name}] set the same command. Keep one")
        if name not in commands:
            raise unknown(f"table in {FILE}", name, [*command_names(), "plugins"])
        parameters = {
            option.removeprefix("--"): parameter.name
            for parameter in commands[name].params
            for option in parameter.opts
            if option.startswith("--")
        }
        if not table.keys() <= parameters.keys():
            parameters |= options_of_kinds(settings_class(command_module(name).command))
        renamed = {
            old: setting.flag
            for setting in commands[name].settings.values()
            for old in setting.formerly
        }
        for key in table:
            if key not in parameters:
                known = parameters.keys() - renamed.keys()
                raise unknown(f"key in [{name}] of {FILE}", key, known)
            if key in renamed:
                setting_names.note_renamed(f"{FILE}: [{name}] {key}", renamed[key])
        where = f"{FILE}: [{name}] "
        values = setting_names.by_current_name(table, parameters.__getitem__, where)
        if called in (name, DOCTOR):
            settings = commands[name].settings
            for key in filter(settings.__contains__, list(values)):
                values[key] = _as_typed(settings[key], values[key], where, called == DOCTOR)
        defaults[name] = values
    return defaults


def _as_typed(setting: Setting, value: Any, where: str, check_bounds: bool) -> Any:
    """Return a value of numtok.toml in the form that typer accepts. A single value of an option
    that is repeatable needs no brackets. Bounds are otherwise checked only if the value is used."""
    try:
        read = setting.read(value)
    except ValueError as error:
        raise UsageError(f"{where}{setting.flag} must be {error} (got {value!r})") from None
    if check_bounds and (wrong := setting.wrong(read)) is not None:
        raise UsageError(f"{where}{setting.flag} {with_value(wrong, shown_value(read))}")
    return join_names(read) or None if setting.joined else read
