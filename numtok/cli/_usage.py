"""In one line what typer says, in several and a box, of a command line that cannot be."""

from collections.abc import Iterable, Sequence
from typing import Any

from numtok.errors import UsageError, unknown

#: Commands by the names that they had before.
_FORMER = {"faults": "errors"}
#: What options of ``probe`` asked for before each probe had a name.
_FORMER_PROBES = {
    "--text": "confidence MODEL --text TEXT",
    "--confidence": "confidence MODEL ENCODED",
    "--sweep": "sweep MODEL ENCODED --number N",
    "--embedding": "embedding MODEL",
    "--pca": "pca MODEL [ENCODED]",
}


def unknown_command(name: str, known: Iterable[str], what: str = "command") -> UsageError:
    """The error for a command, or a table of a file that has its name, that does not exist.

    >>> str(unknown_command("faults", ["compare", "errors"]))
    "unknown command 'faults', which is called 'errors' now: `numtok errors`"
    """
    now = _FORMER.get(name)
    if now is None:
        return unknown(what, name, known)
    return UsageError(f"unknown {what} {name!r}, which is called {now!r} now: `numtok {now}`")


def unknown_kind(command: str, words: Sequence[str], error: UsageError) -> UsageError:
    """The error for a first word behind a command that names no kind of it; of ``probe`` with the
    form that the command line has now.

    >>> str(unknown_kind("probe", ["m", "d", "--sweep", "0"], UsageError("unknown probe 'm'")))
    "unknown probe 'm'; a probe stands before the model now: `numtok probe sweep MODEL ..."
    """
    if command != "probe" or not str(error).startswith("unknown probe "):
        return error
    options = {word.partition("=")[0] for word in words}
    forms = (now for option, now in _FORMER_PROBES.items() if option in options)
    now = next(forms, "samples MODEL ENCODED")
    return UsageError(f"{error}; a probe stands before the model now: `numtok probe {now}`")


def usage_message(error: Any) -> str | None:
    """The line for an exception of typer's; None for any other, and empty where the help was shown.

    Typer has exceptions of its own, older versions those of click; both tell what they have to by
    ``format_message``.
    """
    if not hasattr(error, "format_message"):
        return None
    message = str(error.format_message()).strip().rstrip(".")
    context = getattr(error, "ctx", None)
    commands = getattr(getattr(context, "command", None), "commands", None)
    if commands and message.startswith("No such command "):
        return str(unknown_command(message.split("'")[1], commands))
    if not message:
        return ""
    message = message[0].lower() + message[1:].replace("Value error, ", "").replace("Input", "it")
    for problem in _problems(error):  # of pydantic, which leaves out of its message what it got
        if (got := repr(problem.get("input"))) not in message:
            message += f", but is {got}"
    path = getattr(context, "command_path", None) or "numtok"
    return f"{message}; `{path} --help` says what is possible"


def _problems(error: Any) -> list[dict[str, Any]]:
    found = getattr(error.__cause__, "errors", None)
    return list(found()) if callable(found) else []
