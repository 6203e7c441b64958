"""In one line what typer says, in several and a box, of a command line that cannot be."""

from typing import Any

from numtok.errors import unknown


def told(error: Any) -> str | None:
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
        return str(unknown("command", message.split("'")[1], commands))
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
