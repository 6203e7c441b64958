"""The options of a command, made from its settings, and those of a registry part that it names.

The function of a command's file has a parameter ``settings`` of a class of settings, and may have
one of :class:`Format` and others as typer takes them::

    def command(context: typer.Context, settings: Config, format: Format) -> None: ...

:func:`as_typer` returns the function that typer is shown. In place of ``settings`` it has an option
or an argument for each setting. If one of them names a part, such as the task of ``gen``, it also
has an option for each setting of the part that the command line names.
"""

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from numtok.cli.output.printing import Format, print_table
from numtok.config import FILE
from numtok.declaration import Setting, SettingError, settings_in
from numtok.errors import UsageError, meaningless
from numtok.names import split_names
from numtok.plugins import plugin_folders, registries

FormatOption = Annotated[Format, typer.Option("--format", help="How to print the table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
COLUMNS = ("setting", "default", "allowed", "what")  # of a part's settings
_SWITCHES = ("--json", "--help")


def settings_class(command: Callable[..., None]) -> Any:
    """Return the class of the settings that a command takes; None if it takes none."""
    return inspect.get_annotations(command, eval_str=True).get("settings")


class Kind:
    """A part of a registry: its name, its class and its settings."""

    def __init__(self, folder: str, spec: str) -> None:
        from numtok.registry import name_in, registry_in  # imports only this part

        self.name = name_in(spec)
        self.kind: Any = registry_in(registries()[folder])[self.name]
        self.settings = settings_in(self.kind)

    def options(self) -> Iterator[Setting]:
        """Yield each setting as an option whose text the registry reads; one that is not given is
        None, or False."""
        for one in self.settings.values():
            said = [one.help] if one.help else []
            if not one.switch and one.usual is not None:
                said.append(f"Default: {one.usual}.")
            if one.allowed:
                said.append(f"Allowed: {one.allowed}.")
            yield Setting(
                name=one.name,
                flag=one.flag,
                type=bool if one.switch else str if one.required else str | None,
                default=one.default if one.switch or one.required else None,
                help=" ".join(said),
                metavar=None if one.switch else "VALUE",
                section=f"Options of {self.name}",
            )

    def rows(self) -> Iterator[tuple[str, str | None, str, str]]:
        """Yield for each setting how a spec gives it, its default, what is allowed, and its
        help."""
        for name, one in self.settings.items():
            first = name == getattr(self.kind, "positional", None)
            written = f"{self.name}:{name.upper()}" if first else f"{one.flag}="
            yield written, one.usual, one.allowed, one.help

    @property
    def text(self) -> str:
        """The docstring of its class without settings and examples."""
        text = inspect.cleandoc(self.kind.__doc__ or "").partition("\n>>> ")[0]
        text = text.partition("\nRaises ")[0]
        names = "|".join(self.settings)
        entry = rf"^(?:{names})(?:, (?:{names}))*\n(?:    .*\n?)+"
        text = re.sub(entry, "", text, flags=re.M) if names else text
        return re.sub(r"\n{3,}", "\n\n", text).strip().replace("``", "")


# --- the function that typer is shown ------------------------------------------------------------


def as_typer(
    command: Callable[..., None], kind: Kind | None = None, *, name_plugins: bool = False
) -> Callable[..., None]:
    """Return the function that typer is shown for a command; ``name_plugins``: in its help."""
    settings = settings_class(command)
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        if settings is not None and one.annotation is settings:
            # Those of a kind first: the help shows the panel of what comes first on top.
            every = [*([] if kind is None else kind.options()), *settings_in(settings).values()]
            parameters += [_option(each, name_plugins) for each in every]
        elif one.annotation is Format:
            parameters.append(_parameter("format", FormatOption, Format.TABLE))
            parameters.append(_parameter("json", JsonOption, False))
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
    """Build the settings from typer's ``values``, and take those out."""
    context: typer.Context = values["context"]
    known: Mapping[str, Setting] = settings_in(settings)
    replaced = {
        other
        for name, one in known.items()
        if _is_from(context, name, "COMMANDLINE")
        for other in one.replaces
        if _is_from(context, other, "DEFAULT_MAP")
    }
    made = {}
    for name, one in known.items():
        value = values.pop(name)
        if one.joined:
            value = split_names(value or "")
        elif one.several:
            value = tuple(value or ())
        made[name] = one.default if name in replaced else value
    if kind is not None:
        options = {name: values.pop(name) for name in kind.settings}
        made["options"] = {name: one for name, one in options.items() if one not in (None, False)}
    try:
        return settings(**made)
    except SettingError as error:
        if _is_from(context, error.key, "DEFAULT_MAP"):
            raise UsageError(error.at(f"{FILE}: [{context.info_name}]")) from None
        raise


def check_applies(context: typer.Context, settings: Any, to: str, told: str) -> None:
    """Raise UsageError if an option was typed that applies to other data: to texts, although the
    data ``to`` are tables; ``told`` says what the data are."""
    for name, one in settings_in(type(settings)).items():
        if one.of not in (None, to) and _is_from(context, name, "COMMANDLINE"):
            raise meaningless(one.flag, told)


def _is_from(context: typer.Context, name: str, source: str) -> bool:
    found = context.get_parameter_source(name)
    return found is not None and found.name == source


def _option(setting: Setting, name_plugins: bool) -> inspect.Parameter:
    """Return the option, or the argument, for a setting."""
    hint, default = setting.type, setting.default
    if setting.several:
        hint = str if setting.joined else list[str]
        if not setting.required:
            hint, default = hint | None, None
    facts: Mapping[str, Any] = {"metavar": setting.metavar, "help": _help(setting, name_plugins)}
    if setting.argument:
        declared = typer.Argument(**facts)
    else:
        declared = typer.Option(
            f"--{setting.flag}",
            rich_help_panel=setting.section,
            autocompletion=_completing(setting.registry) if setting.registry else None,
            show_default=setting.shown_default is None,
            **facts,
        )
    default = inspect.Parameter.empty if setting.required else default
    return _parameter(setting.name, Annotated[hint, declared], default)


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


def _help(setting: Setting, name_plugins: bool) -> str:
    """Return the line of help, with the plugins that can be named."""
    said = setting.sentence
    if setting.shown_default is not None:
        said += f" Default: {setting.shown_default}."
    if not (name_plugins and setting.registry and plugin_folders()):
        return said
    names = names_in(setting.registry).plugins()
    return f"{said} Plugins: {', '.join(names)}." if names else said


def names_in(folder: str) -> Any:
    """Return a registry for its names: none of its parts is imported."""
    from numtok.registry import Registry

    return Registry[Any](registries()[folder], folder.removesuffix("s"))


def _completing(folder: str) -> Callable[[str], list[str]]:
    """Return what completes a word by the names of a registry."""
    return lambda incomplete: [name for name in names_in(folder) if name.startswith(incomplete)]


# --- settings that name a part -------------------------------------------------------------------


def expanding(settings: Any) -> Setting | None:
    """Return the setting that names a part whose settings become options, if a command has one."""
    known = {} if settings is None else settings_in(settings)
    return next((one for one in known.values() if one.expands), None)


def kind_in(settings: Any, folder: str, words: Sequence[str]) -> Kind | None:
    """Return the part that a command line names; ``words`` follow the name of the command."""
    switches = {f"--{one.flag}" for one in settings_in(settings).values() if one.switch}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return Kind(folder, word)
        if "=" not in word and word not in switches and word not in _SWITCHES:
            next(rest, None)
    return None


def specs_in(settings: Any, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the specs that options name, as ``--head mdn:5``, and the folder of each registry."""
    folders = {
        f"--{one.flag}": one.registry
        for one in settings_in(settings).values()
        if one.registry and not one.argument
    }
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if (folder := folders.get(option)) is not None:
            value = value if equals else next(iter(words[place + 1 :]), "")
            if value and not value.startswith("-"):
                yield folder, value


def options_of_kinds(settings: Any) -> dict[str, str]:
    """Return the fields of the options that any part has, by option; all parts are imported."""
    if (named := expanding(settings)) is None:
        return {}
    kinds = names_in(named.registry)
    return {one.flag: key for name in kinds for key, one in settings_in(kinds[name]).items()}


def print_kind(folder: str, spec: str) -> None:
    """Print what a part is, and its settings."""
    kind = Kind(folder, spec)
    typer.echo(f"{kind.name}: {_filled(kind.text)}\n")
    if rows := list(kind.rows()):
        print_table(f"settings of {kind.name}", COLUMNS, rows)


def _filled(text: str) -> str:
    """Fill the lines of the terminal with paragraphs and points; keep what is indented.

    >>> print(_filled("One\\npart.\\n\\n- a\\n  point\\n- another\\n\\n    kept\\n    so"))
    One part.
    <BLANKLINE>
    - a point
    - another
    <BLANKLINE>
        kept
        so
    """
    width = shutil.get_terminal_size().columns
    parts = []
    for part in text.split("\n\n"):
        if part.startswith("    "):
            parts.append(part)
            continue
        points = re.split(r"\n(?=- )", part)
        parts.append("\n".join(_line(" ".join(point.split()), width) for point in points))
    return "\n\n".join(parts)


def _line(text: str, width: int) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
