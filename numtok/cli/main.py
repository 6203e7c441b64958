"""The ``numtok`` command: its commands, its global options, errors -> exit codes.

A command is a file beside this one. It defines one function ``command`` with a
docstring, and may define ``CONTEXT``, a dict of typer's context settings; its
name is the file's, with ``-`` for ``_``. Files whose name begins with ``_`` are
shared by commands. ``numtok --help`` imports every file here, so at the top it
imports typer and the standard library only; a command that is called, its own.
"""

import gc
import inspect
import io
import os
import pkgutil
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, NoReturn

import typer

from numtok import cli, plugins
from numtok.cli._options import (
    Kind,
    as_typer,
    expanding,
    kind_in,
    names_in,
    options_of_kinds,
    print_kind,
    settings_class,
    specs_in,
)
from numtok.cli._shared import Invocation
from numtok.cli._signals import Terminated, raising_at_signals
from numtok.cli._usage import unknown_command, unknown_kind, usage_message
from numtok.cli.output.printing import one_line
from numtok.config import FILE, Config, load
from numtok.errors import (
    NumtokError,
    StoreError,
    TrainingFailed,
    UsageError,
    is_out_of_memory,
    unknown,
)
from numtok.plugins import add_plugin_folders, fault_of
from numtok.version import __version__


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"numtok {__version__}")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", envvar="NUMTOK_STORE", help="Where artifacts are. Default: artifacts"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Compare the ways of putting numbers into a language model and getting them out again."""
    config: Config = context.obj or Config()  # as _run has read it
    context.default_map = _defaults(context, config)
    context.obj = Invocation(store or config.store or Path("artifacts"), quiet)
    plugins.on_use = partial(_check_plugin, context.obj)


def _check_plugin(invocation: Invocation, registry: Any, thing: object) -> None:
    from numtok.contracts import check_plugin

    check_plugin(invocation.note, registry, thing)


def _defaults(context: typer.Context, config: Config) -> dict[str, Any]:
    """The tables of numtok.toml, with option names turned into parameter names."""
    commands: dict[str, Any] = getattr(context.command, "commands")  # noqa: B009 (typer's group)
    defaults: dict[str, Any] = {}
    for name, table in config.commands.items():
        if name not in commands:
            raise unknown_command(name, [*_names(), "plugins"], f"table in {FILE}")
        parameters = {
            option.removeprefix("--"): parameter.name
            for parameter in commands[name].params
            for option in parameter.opts
            if option.startswith("--")
        }
        if not table.keys() <= parameters.keys():
            parameters |= options_of_kinds(settings_class(_module(name).command))
        for key in table:
            if key not in parameters:
                raise unknown(f"key in [{name}] of {FILE}", key, parameters)
        defaults[name] = {parameters[key]: value for key, value in table.items()}
    return defaults


def build(words: Sequence[str] = (), tables: Iterable[str] = ()) -> typer.Typer:
    """The app with the command that ``words`` call, and those that ``tables`` of numtok.toml are
    for; with every command where none is called. ``words`` are the command line, global options
    first: which options a command has may depend on them."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_global_options)
    (called, rest), known = _called(words), _names()
    needed = {called, *tables} if called in known else set(known)
    for name in (one for one in known if one in needed):
        module, kind = _module(name), None
        text = inspect.getdoc(module.command) or ""
        if name == called:
            text, kind = _of_kind(module, name, text, rest)
        app.command(name, context_settings=getattr(module, "CONTEXT", None), help=_reflowed(text))(
            as_typer(module.command, kind, name_plugins=name == called and "--help" in rest)
        )
    return app


def _names() -> list[str]:
    """The commands: their files are those beside this one."""
    files = (one.name for one in pkgutil.iter_modules(cli.__path__) if not one.ispkg)
    return [one.replace("_", "-") for one in files if one != "main" and not one.startswith("_")]


def _of_kind(module: Any, name: str, text: str, words: Sequence[str]) -> tuple[str, Kind | None]:
    """The help of a command and the kind that its ``words`` name, where it is one of kinds."""
    settings = settings_class(module.command)
    if (named := expanding(settings)) is None:
        return text, None
    try:
        kind = kind_in(settings, named.registry, words)
    except UsageError as error:
        raise unknown_kind(name, words, error) from None
    if kind is not None:
        more = module.about(kind.kind) if hasattr(module, "about") else ""
        return f"{kind.text}\n\n{more}", kind
    what, names = named.name, ", ".join(names_in(named.registry))
    if "--help" in words:
        return f"{text}\n\n{what.capitalize()}s: {names}", None
    raise UsageError(
        f"{name} needs a {what}; known: {names}; `numtok {name} {what.upper()} --help` says what "
        "it is"
    )


def _module(command: str) -> Any:
    return pkgutil.resolve_name(f"numtok.cli.{command.replace('-', '_')}")


def _called(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The command that a command line calls, and the words behind its name."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] == "--store" else 1
    return (words[place], words[place + 1 :]) if place < len(words) else (None, ())


def _reflowed(text: str) -> str:
    """Each paragraph in one line: the help would break lines where the file does, and again.

    >>> _reflowed("Make it.\\n\\nIt is made\\nonce.")
    'Make it.\\n\\nIt is made once.'
    """
    parts = re.split(r"\n\n|\n(?=- )", text)
    return "\n\n".join(" ".join(part.split()) for part in parts)


def main() -> NoReturn:
    """Run the command line and exit with the code that the outcome has."""
    _open_closed_streams()
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # rich takes a width of 0 literally
    # Threads that wait for each other spin, and where other work has taken a core they spin for
    # most of the time: training is then eight times slower. A shorter wait costs a fifth at worst.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    # Imports make half a million objects and no garbage; looking for it takes a tenth of a second.
    gc.set_threshold(100_000, 20, 100)
    # NumPy's, of overflow or NaN, which results show; -W and PYTHONWARNINGS come first. Worker
    # processes read the variable.
    warnings.filterwarnings("ignore", category=RuntimeWarning, append=True)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::RuntimeWarning")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Half characters, as of a path that is no UTF-8 in the command of a manifest.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with raising_at_signals():
            code = _run()
        # Here, where a failure can still be told; the interpreter only grumbles about it.
        sys.stdout.flush()
    except BrokenPipeError:
        code = _closed_pipe()
    except OSError as error:
        _drop_output()
        _complain(f"cannot write the output: {error.strerror}")
        code = StoreError.exit_code
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open standard streams that the caller closed (``>&-``) on the null device: files opened later
    would take their descriptors, and ``print`` writes to stdout if ``sys.stderr`` is None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor: the stream's own
            os.set_inheritable(null, True)
            setattr(sys, name, os.fdopen(null, mode, closefd=False))


def _run() -> int:
    try:
        words = _global_first(sys.argv[1:])
        called, rest = _called(words)
        config = Config()
        if called is not None:
            config = load(Path())
            add_plugin_folders(config.plugins)
            if "--help" in rest and _help_of_parts(called, rest):
                return 0
        command = typer.main.get_command(build(words, config.commands))
        # An exit with a code, or with none, comes back as its value.
        code = command(words, prog_name="numtok", standalone_mode=False, obj=config)
    except NumtokError as error:
        return _refused(error)
    except SystemExit as stop:
        # typer and rich both turn a closed pipe into exit 1, which is a negative verdict here.
        if isinstance(stop.__context__, BrokenPipeError):
            return _closed_pipe()
        code = stop.code
    except Terminated:
        _complain("terminated")
        return 143
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failed(error)
    code = code if isinstance(code, int) else 0
    if code == 130:
        _complain("interrupted")
    return code


def _help_of_parts(called: str, words: Sequence[str]) -> bool:
    """Show the help of what options name, as ``train --head mdn:5 --help``; whether any does."""
    try:
        settings = settings_class(_module(called).command)
    except ImportError:
        return False  # no command, which typer says
    parts = [] if settings is None else list(specs_in(settings, words))
    for folder, spec in parts:
        print_kind(folder, spec)
    return bool(parts)


def _failed(error: Exception) -> int:
    """Report an error of Python or a library; return the exit code."""
    if is_out_of_memory(error):
        what = shorten(f"{type(error).__name__}: {error}", 60, placeholder=" ...")
        return _refused(
            TrainingFailed(f"out of memory ({what}). Choose less data or a smaller model")
        )
    if isinstance(error, OSError):
        # Below the store these have become StoreErrors, so this is about an input or the output.
        _complain(f"input or output failed: {fault_of(error) or error}")
        return StoreError.exit_code
    if (fault := fault_of(error)) is not None:
        return _refused(fault)
    if (line := usage_message(error)) is None:
        traceback.print_exc()
        _complain("this is a bug; please report it with the lines above")
        return 70
    if line:
        _complain(line)
    return 2


def _refused(error: NumtokError) -> int:
    """Say what is wrong, of a plugin's code with its traceback; the code that it has."""
    print(getattr(error, "trace", ""), end="", file=sys.stderr)
    _complain(str(error))
    for line in getattr(error, "more", ()):
        print(f"  {one_line(line)}", file=sys.stderr)
    return error.exit_code


def _global_first(arguments: list[str]) -> list[str]:
    """The command line with the global options in front, wherever they were written.

    >>> _global_first(["encode", "a.jsonl", "--store", "here"])
    ['--store', 'here', 'encode', 'a.jsonl']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word == "--store":
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word in ("-q", "--quiet") or word.startswith("--store="):
            first.append(word)
        else:
            rest.append(word)
    return first + rest + arguments[end:]


def _complain(message: str) -> None:
    print(f"numtok: {one_line(message)}", file=sys.stderr)


def _closed_pipe() -> int:
    """Nobody reads on: end quietly with the code a shell gives a process that SIGPIPE ended."""
    _drop_output()
    return 128 + signal.SIGPIPE


def _drop_output() -> None:
    """What is still buffered would raise again when the interpreter flushes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
