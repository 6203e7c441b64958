"""Settings that name one of several kinds: the options that a kind has, and its help."""

import dataclasses
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from numtok.cli.output.printing import print_table
from numtok.declaration import KEY, declaration_of, declarations, flag_of, help_of
from numtok.plugins import registries

COLUMNS = ("setting", "default", "allowed", "what")  # of a kind's settings
_SWITCHES = ("--json", "--help")


class Kind:
    """A name of a registry, its class and its settings."""

    def __init__(self, folder: str, spec: str) -> None:
        from numtok.registry import name_in, registry_in  # imports what is asked for alone

        self.name = name_in(spec)
        self.kind: Any = registry_in(registries()[folder])[self.name]

    @property
    def settings(self) -> list[dataclasses.Field[Any]]:
        """Those that a spec may set, as fields of the class."""
        from numtok.class_settings import spec_fields

        return list(spec_fields(self.kind).values())

    def options(self) -> Iterator[inspect.Parameter]:
        """An option for each setting; one that is not given is None, or False."""
        helps = help_of(self.kind)
        for field in self.settings:
            needed, switch = field.default is dataclasses.MISSING, field.default is False
            said = helps.get(field.name, "")
            if not switch and (usual := default_of(field)) is not None:
                said = f"{said} Default: {usual}.".lstrip()
            if allowed := allowed_of(field):
                said = f"{said} Allowed: {allowed}.".lstrip()
            option = typer.Option(
                f"--{flag_of(field)}",
                metavar=None if switch else "VALUE",
                help=said,
                show_default=False,
                rich_help_panel=f"Options of {self.name}",
            )
            if switch:
                yield parameter(field.name, Annotated[bool, option], False)
            elif needed:
                yield parameter(field.name, Annotated[str, option], inspect.Parameter.empty)
            else:
                yield parameter(field.name, Annotated[str | None, option], None)

    def rows(self) -> Iterator[tuple[str, str | None, str, str]]:
        """Of each setting: how a spec gives it, its default, what is allowed, and its help."""
        helps = help_of(self.kind)
        for field in self.settings:
            first = field.name == getattr(self.kind, "positional", None)
            written = f"{self.name}:{field.name.upper()}" if first else f"{flag_of(field)}="
            yield written, default_of(field), allowed_of(field), helps.get(field.name, "")

    @property
    def text(self) -> str:
        """What its docstring says of it, but for its settings and its examples."""
        text = inspect.cleandoc(self.kind.__doc__ or "").partition("\n>>> ")[0]
        text = text.partition("\nRaises ")[0]
        names = "|".join(field.name for field in self.settings)
        entry = rf"^(?:{names})(?:, (?:{names}))*\n(?:    .*\n?)+"
        text = re.sub(entry, "", text, flags=re.M) if names else text
        return re.sub(r"\n{3,}", "\n\n", text).strip().replace("``", "")


def default_of(field: dataclasses.Field[Any]) -> str | None:
    """As it is written in a spec; None where there is none, or where it says nothing."""
    from numtok.class_settings import as_spec

    unset = (dataclasses.MISSING, None, "")
    return None if field.default in unset else as_spec(field.default)


def allowed_of(field: dataclasses.Field[Any]) -> str:
    """The bounds with which a field is declared; empty where there are none."""
    declared = KEY in field.metadata
    return declaration_of(field).allowed if declared else ""


def parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """A parameter of a function that typer is shown."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


def expanding(settings: Any) -> tuple[str, str] | None:
    """The setting that names a kind whose settings are options, and the registry's folder."""
    for field, declaration in declarations(settings):
        if declaration.expands and declaration.registry is not None:
            return field.name, declaration.registry
    return None


def kind_in(settings: Any, words: Sequence[str]) -> Kind | None:
    """The kind whose settings are options, ``words`` being what follows the command's name."""
    if (found := expanding(settings)) is None:
        return None
    switches = {f"--{flag_of(field)}" for field, _ in declarations(settings) if field.type is bool}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return Kind(found[1], word)
        if "=" not in word and word not in switches and word not in _SWITCHES:
            next(rest, None)
    return None


def specs_in(settings: Any, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The specs that options name, as ``--head mdn:5``, and the folder of the registry of each."""
    folders = {
        f"--{flag_of(field)}": declaration.registry
        for field, declaration in declarations(settings)
        if declaration.registry is not None and not declaration.argument
    }
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if (folder := folders.get(option)) is not None:
            value = value if equals else next(iter(words[place + 1 :]), "")
            if value and not value.startswith("-"):
                yield folder, value


def print_kind(folder: str, spec: str) -> None:
    """What there is to know of a name of a registry, and its settings."""
    kind = Kind(folder, spec)
    typer.echo(f"{kind.name}: {_filled(kind.text)}\n")
    if rows := list(kind.rows()):
        print_table(f"settings of {kind.name}", COLUMNS, rows)


def options_of_kinds(settings: Any) -> dict[str, str]:
    """The options that some kind has, by name, and their parameters; all kinds are imported."""
    if settings is None or (found := expanding(settings)) is None:
        return {}
    from numtok.class_settings import names_of_fields
    from numtok.registry import Registry

    kinds = Registry[Any](registries()[found[1]], found[0])
    return {option: key for name in kinds for option, key in names_of_fields(kinds[name]).items()}


def kinds_of(settings: Any) -> tuple[str, str] | None:
    """The setting that names a kind, and the names that there are; None where none does."""
    if (found := expanding(settings)) is None:
        return None
    from numtok.registry import Registry

    name, folder = found
    return name, ", ".join(Registry[Any](registries()[folder], name))


def _filled(text: str) -> str:
    """Paragraphs and points in lines of the terminal, while what is indented stays as it is.

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
