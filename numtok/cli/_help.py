"""Layout of ``--help`` pages: panels with two columns, for a command and for the list of commands.

Typer's own layout has a column for types and wraps most lines at 80 columns. This layout puts an
option and its placeholder in one column, and restrictions and the default in parentheses at the end
of the line, as in ``Final learning rate, as a fraction of the peak (text models; default 0.1)``.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from numtok.cli._values import convert_if_needed
from numtok.declaration import Setting, without_stop
from numtok.errors import UsageError
from numtok.setting_names import note_renamed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HELP = ("-h", "--help")
CONTEXT = {"help_option_names": list(HELP)}  # typer's context settings of every command
ADVANCED = "Advanced"  # the panel of rare options, the last one of a command
_OPTIONS, _ARGUMENTS, _COMMANDS = "Options", "Arguments", "Commands"
_WIDEST_TERM = 26  # characters; the help of a longer term starts on the line below it
#: Commands in each panel of ``numtok --help``; all others are in the panel ``Commands``.
PANELS: Mapping[str, Sequence[str]] = {
    "Start here": ("demo", "race", "explain", "schemes"),
    "Data": ("gen", "fetch", "table", "features", "profile"),
    "Pipeline": ("encode", "train", "eval", "predict"),
    "Analyze": ("report", "compare", "diagnose", "probe", "figure", "score", "fidelity"),
    "Scale": ("sweep", "export", "check"),
    "Store": ("ls", "show", "lineage", "verify", "rm", "gc", "doctor"),
}
_Row = tuple[str, str, str]  # the term, its help, and the note in parentheses


class CommandGroup(TyperGroup):
    """The ``numtok`` command group, whose help lists all commands in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the usage and the description, then panels of commands and of global options."""
        console = _console()
        console.print(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n", style="bold")
        _print_description(console, self.help)
        titles = {name: title for title, names in PANELS.items() for name in names}
        rows: dict[str, dict[str, _Row]] = {title: {} for title in PANELS}
        for name, command in self.commands.items():
            line = inspect.cleandoc(command.help or "").partition("\n")[0].rstrip(".")
            rows.setdefault(titles.get(name, _COMMANDS), {})[name] = (name, line, "")
        width = max(map(len, self.commands), default=0)
        for title, named in rows.items():
            order = [*(name for name in PANELS.get(title, ()) if name in named), *named]
            _print_panel(console, title, [named[name] for name in dict.fromkeys(order)], width)
        _print_options(console, self, ctx, {})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the global options."""
        convert_if_needed(self.get_params(ctx))
        return list(super().parse_args(ctx, args))


class Command(TyperCommand):
    """A command whose help lists its options in panels.

    settings
        Settings of the command, and of the registry part that the command line names, keyed by
        parameter name.
    """

    settings: ClassVar[Mapping[str, Setting]] = {}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the usage and the description, then panels of arguments and options."""
        console = _console()
        console.print(f"{_usage(self, ctx)}\n", style="bold")
        _print_description(console, self.help)
        _print_options(console, self, ctx, self.settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command name.

        The words are also stored as typed, for use in messages. A note is printed for each renamed
        option.
        """
        ctx.meta[WORDS] = list(args)
        typed = set(_options(args))
        for one in self.settings.values():
            if one.single or one.joined:
                _check_single(args, one)
            for old in one.formerly:
                if f"--{old}" in typed and not one.argument:
                    note_renamed(f"--{old}", f"--{one.flag}")
        convert_if_needed(self.get_params(ctx))
        return list(super().parse_args(ctx, args))


WORDS = "numtok.words"  # of a context's ``meta``: the words after the name of the command


def typed_value(context: typer.Context, setting: Setting) -> str | None:
    """Return the last value typed for an option on the command line, or None if there is none.

    The result is always None for an argument, because arguments have no option names.
    """
    *_, value = (None, *_typed_values(list(context.meta.get(WORDS, ())), setting))
    return value


def _check_single(words: Sequence[str], setting: Setting) -> None:
    """Raise UsageError if an option is given more than once."""
    values = [value for value in _typed_values(words, setting) if value is not None]
    if len(values) > 1:
        joined = ",".join(values)
        remedy = f"Write --{setting.flag} {joined}" if setting.joined else "Choose one"
        raise UsageError(f"--{setting.flag} must be given once (got {', '.join(values)}). {remedy}")


def _typed_values(words: Sequence[str], setting: Setting) -> Iterator[str | None]:
    """Yield the values typed for an option; None for one at the end of the words."""
    names = [f"--{name}" for name in setting.names]
    for index, word in enumerate(words):
        if word == "--":
            break
        option, equals, rest = word.partition("=")
        if option in names:
            yield rest if equals else next(iter(words[index + 1 :]), None)


def _options(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        if word == "--":
            return
        if word.startswith("--"):
            yield word.partition("=")[0]


# --- rows of a panel -----------------------------------------------------------------------------


def _usage(command: Any, ctx: Any) -> str:
    pieces = [_argument(one) for one in command.params if isinstance(one, TyperArgument)]
    return " ".join(["Usage:", ctx.command_path, "[OPTIONS]", *pieces])


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    if parameter.nargs != 1 and not name.endswith("..."):
        name = f"{name}..."
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _print_options(
    console: "Console", command: Any, ctx: Any, settings: Mapping[str, Setting]
) -> None:
    """Print the panels in the order of their first options, with the rare options last."""
    panels: dict[str, list[_Row]] = {}
    for one in command.get_params(ctx):
        if getattr(one, "hidden", False):
            continue
        usual = _ARGUMENTS if isinstance(one, TyperArgument) else _OPTIONS
        title = getattr(one, "rich_help_panel", None) or usual
        row = (_term(one, settings.get(one.name)), one.help or "", _note(one, ctx, settings))
        panels.setdefault(title, []).append(row)
    every = [row for rows in panels.values() for row in rows]
    width = max((len(term) for term, _, _ in every if len(term) <= _WIDEST_TERM), default=0)
    for title in sorted(panels, key=lambda one: (one != _ARGUMENTS, one == ADVANCED)):
        _print_panel(console, title, panels[title], width)


def _term(parameter: Any, setting: Setting | None) -> str:
    if isinstance(parameter, TyperArgument):
        return _argument(parameter)
    names = [f"--{setting.flag}"] if setting is not None else parameter.opts
    names = sorted(names, key=len)
    if parameter.is_flag:
        return ", ".join(names)
    return f"{', '.join(names)} {_metavar(parameter)}"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    choices = parameter.type_descriptor.choices
    if choices:
        return "|".join(str(one.value if isinstance(one, Enum) else one) for one in choices)
    return str(parameter.name).rstrip("_").rpartition("_")[2].upper()


def _note(parameter: Any, ctx: Any, settings: Mapping[str, Setting]) -> str:
    """Return the restriction, the default and the environment variable of a parameter."""
    setting = settings.get(parameter.name)
    notes = [setting.restriction] if setting is not None and setting.restriction else []
    if parameter.envvar and isinstance(parameter.envvar, str):
        notes.append(f"or {parameter.envvar}")
    if parameter.required and not isinstance(parameter, TyperArgument):
        notes.append("required")
    elif default := _default(parameter, ctx, setting):
        notes.append(f"default {default}")
    return "; ".join(notes)


def _default(parameter: Any, ctx: Any, setting: Setting | None) -> str:
    """Return the default as shown in the help; one set in ``numtok.toml`` takes precedence."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter._extract_default_help_str(ctx=ctx)
    shown = None if setting is None else setting.shown_default
    if setting is not None and shown is not None and value in (None, (), [], setting.default):
        return shown
    if value is None or parameter.show_default is False or value is False or value == "":
        return ""
    if value is True and getattr(parameter, "is_flag", False):
        return "on"
    return str(
        parameter._get_default_string(ctx=ctx, show_default_is_str=False, default_value=value)
    )


# --- text ----------------------------------------------------------------------------------------


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _print_description(console: "Console", text: str | None) -> None:
    description = filled(inspect.cleandoc(text or ""), console.width)
    console.print(f"{description}\n", soft_wrap=True)


def filled(text: str, width: int) -> str:
    r"""Return a text with paragraphs and list items wrapped to ``width`` characters.

    Line breaks in indented paragraphs are kept.

    >>> print(filled("One\npart.\n\n- a\n  point\n- another\n\n    kept\n    so", 80))
    One part.
    <BLANKLINE>
    - a point
    - another
    <BLANKLINE>
        kept
        so
    """
    parts = []
    for part in text.split("\n\n"):
        if part.startswith("    "):
            parts.append(part)
            continue
        points = re.split(r"\n(?=- )", part)
        lines = [line for point in points for line in _wrapped(" ".join(point.split()), width)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 20),
        subsequent_indent="  " if text.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_panel(console: "Console", title: str, rows: Sequence[_Row], width: int) -> None:
    """Print a panel whose first column has ``width`` characters."""
    if not rows:
        return
    from rich.panel import Panel
    from rich.text import Text

    body = Text(overflow="fold")
    for index, row in enumerate(rows):
        body.append("\n" if index else "")
        body.append_text(_row(*row, width, console.width - 4))
    console.print(Panel(body, title=title, title_align="left", border_style="dim"))


def _row(term: str, help: str, note: str, width: int, whole: int) -> "Text":
    from rich.text import Text

    text = f"{without_stop(help)} ({note})" if note else without_stop(help)
    column = max(whole - width - 2, 20)
    lines = _wrapped(text, column)
    row = Text()
    option, space, metavar = term.rpartition(" ") if term.startswith("-") else (term, "", "")
    if space and (metavar.startswith("-") or not option):
        option, space, metavar = term, "", ""
    elif not option:
        option, metavar = metavar, ""
    row.append(option, style="bold cyan").append(space).append(metavar, style="yellow")
    if len(term) > width:
        row.append("\n" + " " * (width + 2))
    else:
        row.append(" " * (width + 2 - len(term)))
    row.append(("\n" + " " * (width + 2)).join(lines))
    return row
