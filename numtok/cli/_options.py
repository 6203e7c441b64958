"""Builds command options from the settings of the command and of a registry part.

Each command file defines a function ``command``. Its parameter ``settings`` is annotated with the
settings class of the command. It may also have a parameter annotated with :class:`Format`, and
other parameters as typer defines them::

    def command(context: typer.Context, settings: Config, format: Format) -> None: ...

:func:`as_typer` returns the function that typer inspects. Instead of ``settings``, it has one
option or argument per setting. If a setting names a registry part, such as the task for ``gen``,
the settings of the part named on the command line become options as well.
"""

import inspect
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from numtok.cli._help import ADVANCED, HELP, Command, filled, typed_options, typed_value
from numtok.cli.output.printing import Format, print_table
from numtok.config import FILE
from numtok.declaration import Setting, SettingError, settings_in, without_stop
from numtok.errors import UsageError, meaningless
from numtok.plugins import plugin_folders, registries
from numtok.setting_scope import CheckApplies

FormatOption = Annotated[
    Format, typer.Option("--format", metavar="FORMAT", help="table, json, csv or md")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json")]
COLUMNS = ("setting", "default", "allowed", "meaning")  # of a part's settings
_SWITCHES = ("--json", *HELP)


def settings_class(command: Callable[..., None]) -> Any:
    """Return the class of a command's settings, or None if it has no settings."""
    return inspect.get_annotations(command, eval_str=True).get("settings")


class Kind:
    """Name, class and settings of a registry part, such as a task or a head."""

    def __init__(self, folder: str, spec: str) -> None:
        from numtok.registry import name_in, registry_in  # imports only this part

        self.name = name_in(spec)
        self.kind: Any = registry_in(registries()[folder])[self.name]
        self.settings = settings_in(self.kind)

    def options(self) -> Iterator[Setting]:
        """Yield each setting as an option with a text value, which the registry parses. An option
        that was not given is None, or False for a switch."""
        for setting in self.settings.values():
            switch, required = setting.switch, setting.required
            default = (
                None if switch or required else setting.shown_default or setting.default_in_spec
            )
            text, allowed = without_stop(setting.help), setting.allowed
            if setting.choices and not all(choice in text for choice in setting.choices):
                text = f"{text}: {allowed}" if text else allowed
            elif allowed and not setting.choices and default is not None:
                default = f"{default}; {allowed}"
            elif allowed and not setting.choices:
                text = f"{text} ({allowed})".lstrip()
            yield Setting(
                name=setting.name,
                flag=setting.flag,
                aliases=setting.aliases,
                formerly=setting.formerly,
                type=bool if switch else str if required else str | None,
                default=setting.default if switch or required else None,
                help=text,
                metavar=None if switch else "VALUE",
                section=f"Options of {self.name}",
                shown_default=default,
            )

    def rows(self) -> Iterator[tuple[str, str | None, str, str]]:
        """Yield a table row for each setting: its form in a spec, default, allowed values and
        help."""
        for name, setting in self.settings.items():
            first = name == getattr(self.kind, "positional", None)
            written = f"{self.name}:{name.upper()}" if first else f"{setting.flag}="
            default = setting.shown_default or setting.default_in_spec
            yield written, default, setting.allowed, setting.help

    @property
    def text(self) -> str:
        """Class docstring without settings, exceptions and examples."""
        text = inspect.cleandoc(self.kind.__doc__ or "").partition("\n>>> ")[0]
        text = text.partition("\nRaises ")[0]
        names = "|".join(self.settings)
        entry = rf"^(?:{names})(?:, (?:{names}))*\n(?:    .*\n?)+"
        text = re.sub(entry, "", text, flags=re.M) if names else text
        return re.sub(r"\n{3,}", "\n\n", text).strip().replace("``", "")


# --- the function that typer sees ----------------------------------------------------------------


def as_typer(
    command: Callable[..., None], kind: Kind | None, *, name_plugins: bool
) -> Callable[..., None]:
    """Return the function that typer inspects in place of ``command``. With ``name_plugins``, the
    help for each option lists the plugins that it accepts."""
    settings = settings_class(command)
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if settings is not None and parameter.annotation is settings:
            options = _all_settings(settings, kind).values()
            parameters += [_option(option, name_plugins) for option in options]
        elif parameter.annotation is Format:
            parameters.append(_parameter("format", FormatOption, Format.TABLE))
            parameters.append(_parameter("json", JsonOption, False))
        else:
            parameters.append(parameter)

    def call(**values: Any) -> None:
        if isinstance(values.get("format"), Format) and values.pop("json"):
            values["format"] = Format.JSON
        if settings is not None:
            values["settings"] = _settings(settings, kind, values)
        command(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def command_class(command: Callable[..., None], kind: Kind | None) -> type[Command]:
    """Return a typer class that lays out the help for a command."""
    settings = settings_class(command)
    known = {} if settings is None else _all_settings(settings, kind)
    return type("NumtokCommand", (Command,), {"settings": known})


def _all_settings(settings: Any, kind: Kind | None) -> dict[str, Setting]:
    """Return the settings of a command by field name. Settings of the registry part that it names
    come first, as in the help."""
    options = [] if kind is None else list(kind.options())
    return {one.name: one for one in options} | dict(settings_in(settings))


def _settings(settings: Any, kind: Kind | None, values: dict[str, Any]) -> Any:
    """Build the settings from typer's ``values``, and remove them from it."""
    context: typer.Context = values["context"]
    known: Mapping[str, Setting] = settings_in(settings)
    replaced = {
        replaced_name
        for name, setting in known.items()
        if _is_from(context, name, "COMMANDLINE")
        for replaced_name in setting.replaces
        if _is_from(context, replaced_name, "DEFAULT_MAP")
    }
    arguments = {}
    for name, setting in known.items():
        value = values.pop(name)
        if setting.joined:
            value = () if value is None else setting.read(value)
        elif setting.several:
            value = tuple(value or ())
        arguments[name] = setting.default if name in replaced else value
    if kind is not None:
        options = {name: values.pop(name) for name in kind.settings}
        arguments["options"] = {
            name: value for name, value in options.items() if value not in (None, False)
        }
    try:
        return settings(**arguments)
    except SettingError as error:
        if _is_from(context, error.key, "DEFAULT_MAP"):
            raise UsageError(error.at(f"{FILE}: [{context.info_name}]")) from None
        error.typed = typed_value(context, known[error.key])
        raise


def options_check(context: typer.Context, settings: Any) -> CheckApplies:
    """Return a check that rejects options for other data, if they are on the command line.

    Unlike :func:`numtok.setting_scope.settings_check`, it also rejects an option that repeats the
    default.
    """

    def check(of: str, description: str) -> None:
        for name, setting in settings_in(type(settings)).items():
            if setting.of not in (None, of) and _is_from(context, name, "COMMANDLINE"):
                raise meaningless(setting.flag, description)

    return check


def _is_from(context: typer.Context, name: str, source: str) -> bool:
    actual = context.get_parameter_source(name)
    return actual is not None and actual.name == source


def _option(setting: Setting, name_plugins: bool) -> inspect.Parameter:
    """Return the option or argument for a setting."""
    hint, default = setting.type, setting.default
    if setting.several:
        hint = str if setting.joined else list[str]
        if not setting.required:
            hint, default = hint | None, None
    facts: Mapping[str, Any] = {
        "metavar": setting.metavar,
        "help": _help(setting, name_plugins),
        "autocompletion": _completing(setting.registry) if setting.registry else None,
    }
    if setting.argument:
        declared = typer.Argument(**facts)
    else:
        declared = typer.Option(
            *(f"--{name}" for name in setting.names),
            rich_help_panel=ADVANCED if setting.advanced else setting.section,
            **facts,
        )
    default = inspect.Parameter.empty if setting.required else default
    return _parameter(setting.name, Annotated[hint, declared], default)


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


def _help(setting: Setting, name_plugins: bool) -> str:
    """Return the line of help, with the plugins that the setting accepts."""
    if not (name_plugins and setting.registry and plugin_folders()):
        return setting.help
    from numtok.registry import folder_registry

    names = folder_registry(setting.registry).plugins()
    return f"{without_stop(setting.help)}. Plugins: {', '.join(names)}" if names else setting.help


def _completing(folder: str) -> Callable[[str], list[str]]:
    """Return a function that completes a word with the names of a registry."""

    def completed(incomplete: str) -> list[str]:
        from numtok.registry import folder_registry

        return [name for name in folder_registry(folder) if name.startswith(incomplete)]

    return completed


# --- settings that name a part -------------------------------------------------------------------


def expanding(settings: Any) -> Setting | None:
    """Return the setting that names a registry part whose settings become options, or None."""
    known = {} if settings is None else settings_in(settings)
    return next((setting for setting in known.values() if setting.expands), None)


def kind_in(settings: Any, folder: str, words: Sequence[str]) -> Kind | None:
    """Return the registry part named on a command line, or None. ``words`` are the words after the
    command name."""
    known = settings_in(settings).values()
    switches = {f"--{name}" for each in known if each.switch for name in each.names}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return Kind(folder, word)
        if "=" not in word and word not in switches and word not in _SWITCHES:
            next(rest, None)
    return None


def specs_in(settings: Any, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the registry folder and the spec for each option with a spec, such as ``--head
    mdn:5``."""
    folders = {
        f"--{name}": setting.registry
        for setting in settings_in(settings).values()
        if setting.registry and not setting.argument
        for name in setting.names
    }
    for option, value in typed_options(words):
        if option in folders and value and not value.startswith("-"):
            yield folders[option], value


def options_of_kinds(settings: Any) -> dict[str, str]:
    """Return the field name for each option that a registry part can add to a command.

    All parts that the command accepts are imported.
    """
    if (named := expanding(settings)) is None:
        return {}
    from numtok.registry import registry_in

    parts = registry_in(registries()[named.registry])
    return {
        name: key
        for part in parts
        for key, setting in settings_in(parts[part]).items()
        for name in setting.names
    }


def print_kind(folder: str, spec: str) -> None:
    """Print the description and the settings of a registry part."""
    kind = Kind(folder, spec)
    typer.echo(f"{kind.name}: {filled(kind.text, shutil.get_terminal_size().columns)}\n")
    if rows := list(kind.rows()):
        print_table(f"settings of {kind.name}", COLUMNS, rows)
