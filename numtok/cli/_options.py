"""The options of a command, made of the declarations of its settings.

The function of a command's file has a parameter ``settings`` of a class of settings, and may have
one of :class:`Format` and others as typer takes them::

    def command(context: typer.Context, settings: Config, format: Format) -> None: ...

:func:`as_typer` gives the function that typer is shown. In place of ``settings`` it has an option
or an argument for each field, and where one of them names a kind, such as the task of ``gen``, an
option for each setting of the kind that the command line names.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from numtok.cli._kinds import Kind, parameter
from numtok.cli.output.printing import Format
from numtok.config import FILE
from numtok.declaration import (
    Declaration,
    SettingError,
    declarations,
    flag_of,
    split_names,
)
from numtok.errors import UsageError, meaningless
from numtok.plugins import plugin_folders, registries

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def settings_class(command: Callable[..., None]) -> Any:
    """The class of the settings that a command takes; None where it takes none."""
    return inspect.get_annotations(command, eval_str=True).get("settings")


def as_typer(
    command: Callable[..., None], kind: Kind | None = None, *, name_plugins: bool = False
) -> Callable[..., None]:
    """The function that typer is shown for a command; ``name_plugins``: in its help."""
    settings = settings_class(command)
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        if settings is not None and one.annotation is settings:
            own = [_of_setting(*declared, name_plugins) for declared in declarations(settings)]
            # Those of a kind first: the help shows the panel of what stands first on top.
            parameters += [*([] if kind is None else kind.options()), *own]
        elif one.annotation is Format:
            parameters.append(parameter("format", FormatOption, Format.TABLE))
            parameters.append(parameter("json", JsonOption, False))
        else:
            parameters.append(one)

    def call(**values: Any) -> None:
        if isinstance(values.get("format"), Format) and values.pop("json"):
            values["format"] = Format.JSON
        if settings is not None:
            values["settings"] = _settings(settings, kind, values)
        command(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _settings(settings: Any, kind: Kind | None, values: dict[str, Any]) -> Any:
    """The settings that typer's ``values`` stand for, which are taken out of them."""
    context: typer.Context = values["context"]
    replaced = {
        other
        for field, declaration in declarations(settings)
        if _is_from(context, field.name, "COMMANDLINE")
        for other in declaration.replaces
        if _is_from(context, other, "DEFAULT_MAP")
    }
    made = {}
    for field, declaration in declarations(settings):
        value = values.pop(field.name)
        if declaration.joined:
            value = split_names(value or "")
        elif isinstance(value, list) or (value is None and field.default == ()):
            value = tuple(value or ())
        made[field.name] = field.default if field.name in replaced else value
    if kind is not None:
        options = {field.name: values.pop(field.name) for field in kind.settings}
        made["options"] = {name: one for name, one in options.items() if one not in (None, False)}
    try:
        return settings(**made)
    except SettingError as error:
        if _is_from(context, error.key, "DEFAULT_MAP"):
            raise UsageError(error.at(f"{FILE}: [{context.info_name}]")) from None
        raise


def check_applies(context: typer.Context, settings: Any, to: str, told: str) -> None:
    """Raise UsageError where an option was typed that is for something else: for texts, where
    data ``to`` are tables; ``told`` says what there is."""
    for field, declaration in declarations(settings):
        if declaration.of not in (None, to) and _is_from(context, field.name, "COMMANDLINE"):
            raise meaningless(flag_of(field), told)


def _is_from(context: typer.Context, name: str, source: str) -> bool:
    found = context.get_parameter_source(name)
    return found is not None and found.name == source


def _of_setting(
    field: dataclasses.Field[Any], declaration: Declaration, name_plugins: bool
) -> inspect.Parameter:
    """The option, or the argument, that a setting is."""
    needed = field.default is dataclasses.MISSING
    default: Any = inspect.Parameter.empty if needed else field.default
    hint: Any = field.type
    if get_args(hint)[1:] == (...,):
        values = str if declaration.joined else list[str]
        hint, default = (values, default) if needed else (values | None, None)
    metavar = declaration.metavar
    if metavar is None and declaration.choices:
        metavar = "|".join(declaration.choices)
    facts: Mapping[str, Any] = {"metavar": metavar, "help": _help(declaration, name_plugins)}
    if declaration.argument:
        return parameter(field.name, Annotated[hint, typer.Argument(**facts)], default)
    option = typer.Option(
        f"--{flag_of(field)}",
        rich_help_panel=declaration.section,
        autocompletion=_completing(declaration.registry) if declaration.registry else None,
        show_default=declaration.shown_default is None,
        **facts,
    )
    return parameter(field.name, Annotated[hint, option], default)


def _help(declaration: Declaration, name_plugins: bool) -> str:
    """With what alone it is for, and the plugins that can be named."""
    said = declaration.sentence
    if declaration.shown_default is not None:
        said += f" Default: {declaration.shown_default}."
    folder = declaration.registry
    if name_plugins and folder is not None and (names := _plugins(folder)):
        said += f" Plugins: {', '.join(names)}."
    return said


def _plugins(folder: str) -> Sequence[str]:
    """The names that plugin folders define: those of their files, none of which is imported."""
    if not plugin_folders():
        return ()
    from numtok.registry import Registry

    return Registry[Any](registries()[folder], folder).plugins()


def _completing(folder: str) -> Callable[[str], list[str]]:
    """The names of a registry that begin as a word does."""

    def names(incomplete: str) -> list[str]:
        from numtok.registry import Registry

        known = Registry[Any](registries()[folder], folder)
        return [name for name in known if name.startswith(incomplete)]

    return names
