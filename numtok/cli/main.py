"""The ``numtok`` program: its commands, its global options, and exit codes for errors.

Each command has a file in this folder, named after the command with ``_`` for ``-``. The file
defines a function ``command`` with a docstring, and may define ``CONTEXT``, a dict of typer context
settings. ``numtok --help`` lists the first line of the docstring, which has at most 55 characters.

Files whose names begin with ``_`` are shared by commands. ``numtok --help`` imports every file in
this folder, so third-party libraries other than typer and rich are imported inside functions.
"""

import gc
import inspect
import io
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, NoReturn

import typer

from numtok import plugins, setting_names
from numtok.cli._commands import (
    FORMER,
    command_module,
    command_names,
    current_name,
    renamed_command,
)
from numtok.cli._config_file import DOCTOR, option_defaults, read_config
from numtok.cli._help import CONTEXT, HELP, CommandGroup
from numtok.cli._options import (
    Kind,
    as_typer,
    command_class,
    expanding,
    kind_in,
    print_kind,
    settings_class,
    specs_in,
)
from numtok.cli._shared import Invocation
from numtok.cli._signals import Terminated, raising_at_signals
from numtok.cli._usage import split_hint, unknown_kind, usage_message
from numtok.cli.output.printing import one_line
from numtok.config import Config
from numtok.errors import NumtokError, StoreError, TrainingFailed, UsageError, is_out_of_memory
from numtok.plugins import fault_of
from numtok.version import __version__

_LONGEST = 1000  # characters of a message


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"numtok {__version__}")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", envvar="NUMTOK_STORE", help="Artifact folder", show_default="artifacts"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Hide notes and progress")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit"
        ),
    ] = False,
) -> None:
    """Find the best number encoding for your language model.

    New here? Run `numtok demo`. Results are stored as artifacts. A REF is a NAME or NAME@VERSION,
    as listed by `numtok ls`.
    """
    config: Config = context.obj or Config()  # read by _run
    try:
        context.default_map = option_defaults(context.command, context.invoked_subcommand, config)
    except NumtokError:
        if context.invoked_subcommand != DOCTOR:
            raise
    if store == "":  # as a path, it would be the current folder
        raise UsageError("--store must not be empty. Name a folder, or leave it out")
    context.obj = Invocation(Path(store or config.store or "artifacts"), quiet)
    plugins.on_use = partial(_check_plugin, context.obj)


def _check_plugin(invocation: Invocation, registry: Any, thing: object) -> None:
    from numtok.plugin_checks import check_plugin

    check_plugin(invocation.note, registry, thing)


def build(words: Sequence[str] = (), tables: Iterable[str] = ()) -> typer.Typer:
    """Build the typer app for a command line.

    words
        The command line without global options. If it calls a command, only that command and the
        commands in ``tables`` are added; otherwise, all commands are. The options of the called
        command may depend on the words after it.
    tables
        Commands that have a table in ``numtok.toml``.
    """
    app = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    app.callback()(_global_options)
    called, rest = (words[0], words[1:]) if words else (None, ())
    known = command_names()
    current = {renamed_command(table) for table in tables}
    needed = {called, *current} if called in known else set(known)
    for name in (each for each in known if each in needed):
        module, kind = command_module(name), None
        text = inspect.getdoc(module.command) or ""
        if name == called:
            text, kind = _of_kind(module, name, text, rest)
        app.command(
            name,
            cls=command_class(module.command, kind),
            context_settings=getattr(module, "CONTEXT", None),
            help=_reflowed(text),
        )(as_typer(module.command, kind, name_plugins=name == called and _wants_help(rest)))
    return app


def _wants_help(words: Sequence[str]) -> bool:
    return any(word in HELP for word in words)


def _of_kind(module: Any, name: str, text: str, words: Sequence[str]) -> tuple[str, Kind | None]:
    """Return the help of a command and the registry part that ``words`` name, if it takes one."""
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
    from numtok.registry import folder_registry

    what, names = named.name, ", ".join(folder_registry(named.registry))
    if _wants_help(words):
        return f"{text}\n\n{what.capitalize()}s: {names}", None
    raise UsageError(
        f"{name} needs a {what}, one of {names}. Describe one with "
        f"`numtok {name} {what.upper()} --help`"
    )


def _with_current_command(words: list[str]) -> list[str]:
    """Return a command and the words after it with the current name of the command, and ``help
    COMMAND`` as ``COMMAND --help``."""
    if not words:
        return words
    called, *rest = words
    if called == "help":
        return _with_current_command([*rest, "--help"])
    current = current_name(called, f"numtok {called}", "numtok {command}")
    return [current, *FORMER.get(called, "").split()[1:], *rest]


def _reflowed(text: str) -> str:
    """Return each paragraph as one line, for the help to wrap.

    >>> _reflowed("Make it.\\n\\nIt is made\\nonce.")
    'Make it.\\n\\nIt is made once.'
    """
    parts = re.split(r"\n\n|\n(?=- )", text)
    return "\n\n".join(" ".join(part.split()) for part in parts)


def main() -> NoReturn:
    """Run the command line of this process, and exit with the resulting exit code."""
    _open_closed_streams()
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # rich takes a width of 0 literally
    # Waiting threads spin. If other processes use a core, they spin most of the time and training
    # is eight times slower. A shorter spin costs a fifth at worst.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    # Imports create half a million objects and no garbage; collecting takes 0.1 seconds.
    gc.set_threshold(100_000, 20, 100)
    # NumPy's warnings about overflow and NaN, which results show anyway. -W and PYTHONWARNINGS take
    # precedence. Worker processes read the variable.
    warnings.filterwarnings("ignore", category=RuntimeWarning, append=True)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::RuntimeWarning")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Lone surrogates, such as those of a path that is not UTF-8, in the command of a manifest.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with raising_at_signals():
            code = _run()
        # Flush here, so that a failure can still be reported with an exit code.
        sys.stdout.flush()
    except BrokenPipeError:
        code = _closed_pipe()
    except OSError as error:
        _drop_output()
        _complain(f"cannot write the output: {error.strerror}")
        code = StoreError.exit_code
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open standard streams that the caller closed (``>&-``) on the null device.

    Otherwise files opened later would take their descriptors, and ``print`` would write to stdout
    if ``sys.stderr`` is None.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor: the stream's own
            os.set_inheritable(null, True)
            setattr(sys, name, os.fdopen(null, mode, closefd=False))


def _run() -> int:
    setting_names.forget_notes()
    options, words = _split(sys.argv[1:])
    quiet = not {"-q", "--quiet"}.isdisjoint(options)
    setting_names.on_renamed = Invocation(Path(), quiet).note
    try:
        words = _with_current_command(words)
        config = Config()
        if words and words[0] not in HELP:
            try:
                config = read_config()
            except NumtokError:
                if words[0] != DOCTOR:
                    raise
            if _wants_help(words) and _help_of_parts(words[0], words[1:]):
                return 0
        command = typer.main.get_command(build(words, config.commands))
        # typer.Exit is returned as its code.
        code = command([*options, *words], prog_name="numtok", standalone_mode=False, obj=config)
    except NumtokError as error:
        return _refused(error)
    except SystemExit as stop:
        # typer and rich turn a closed pipe into exit 1, which means a negative verdict here.
        if isinstance(stop.__context__, BrokenPipeError):
            return _closed_pipe()
        code = stop.code
    except Terminated:
        _complain("terminated")
        return 143
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failed(error, words)
    finally:
        setting_names.on_renamed = None
    code = code if isinstance(code, int) else 0
    if code == 130:
        _complain("interrupted")
    return code


def _help_of_parts(called: str, words: Sequence[str]) -> bool:
    """Print the help of registry parts that options name, as in ``train --head mdn:5 --help``;
    return whether there are any."""
    try:
        settings = settings_class(command_module(called).command)
    except (ImportError, AttributeError):
        return False  # not a command, which typer reports
    parts = [] if settings is None else list(specs_in(settings, words))
    for folder, spec in parts:
        print_kind(folder, spec)
    return bool(parts)


def _failed(error: Exception, words: Sequence[str]) -> int:
    """Report an exception of Python or of a library, and return the exit code. ``words`` are the
    command and what follows it."""
    if is_out_of_memory(error):
        what = shorten(f"{type(error).__name__}: {error}", 60, placeholder=" ...")
        return _refused(TrainingFailed(f"out of memory ({what}). Use less data or a smaller model"))
    if isinstance(error, OSError):
        # The store raises StoreErrors instead, so this is about an input or the output.
        _complain(f"input or output failed: {fault_of(error) or error}")
        return StoreError.exit_code
    if (fault := fault_of(error)) is not None:
        return _refused(fault)
    if (line := usage_message(error, partial(_described, words))) is None:
        traceback.print_exc()
        _complain("this is a bug. Please report it with the lines above")
        return 70
    if line:
        _complain(line)
    return 2


def _described(words: Sequence[str]) -> str:
    """Return the command whose ``--help`` lists the options of the command in ``words``."""
    if not words or words[0] not in command_names():
        return "numtok"
    _, kind = _of_kind(command_module(words[0]), words[0], "", words[1:])
    return " ".join(["numtok", words[0], *([] if kind is None else [kind.name])])


def _refused(error: NumtokError) -> int:
    """Print an error and return its exit code. An error in a plugin is printed with its
    traceback."""
    print(getattr(error, "trace", ""), end="", file=sys.stderr)
    _complain(str(error))
    for line in getattr(error, "more", ()):
        print(f"  {one_line(line)}", file=sys.stderr)
    return error.exit_code


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the global options of a command line, wherever they are, and the other words: the
    command, and what follows it.

    >>> _split(["encode", "a.jsonl", "--store", "here"])
    (['--store', 'here'], ['encode', 'a.jsonl'])

    If ``--store`` lacks its value, no other words are returned, because typer would take the
    command for the value.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options: list[str] = []
    others: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word == "--store":
            value = list(islice(words, 1))
            options += [word, *value]
            if not value:
                return options, []
        elif word in ("-q", "--quiet") or word.startswith("--store="):
            options.append(word)
        else:  # before the command, all options are global
            (others if others or not word.startswith("-") else options).append(word)
    return options, others + arguments[end:]


def _complain(message: str) -> None:
    """Print an error on stderr; on a terminal, the hint is on a separate line."""
    message = one_line(message)
    if len(message) > _LONGEST:  # it quotes a long option, key or cell; the remedy is at the end
        message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
    problem, hint = split_hint(message)
    if hint is not None and sys.stderr.isatty():
        print(f"numtok: {problem}\n  hint: {hint}", file=sys.stderr)
    else:
        print(f"numtok: {message}", file=sys.stderr)


def _closed_pipe() -> int:
    """Return the exit code that a shell gives a process that SIGPIPE ended, without a message."""
    _drop_output()
    return 128 + signal.SIGPIPE


def _drop_output() -> None:
    """Discard buffered output, which would raise again when the interpreter flushes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
