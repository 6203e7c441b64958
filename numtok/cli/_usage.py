"""One-line messages about invalid command lines."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from numtok.config import FILE
from numtok.errors import UsageError, unknown

#: Current form of the earlier options of ``probe``.
_FORMER_PROBES = {
    "--text": "confidence MODEL --text TEXT",
    "--confidence": "confidence MODEL ENCODED",
    "--sweep": "vary MODEL ENCODED --number N",
    "--embedding": "embedding MODEL",
    "--pca": "pca MODEL [ENCODED]",
}
#: Text between the problem and the hint in a message.
_REMEDY = re.compile(r"(?<=[^\s.])\.\s+(?=[A-Z`])")
#: Required form of a value, keyed by the end of pydantic's message.
_FORMS = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "yes or no",
    "string": "a string",
    "path": "a path",
}


def split_hint(message: str) -> tuple[str, str | None]:
    """Split a message into the problem and the hint that follows it. The hint is None if there is
    none.

    >>> split_hint("expected a report, but 'toy' is data. List reports: numtok ls report")
    ("expected a report, but 'toy' is data", 'List reports: numtok ls report')
    >>> split_hint("unknown option --stps. Did you mean --steps? See `numtok train --help`")
    ('unknown option --stps', 'Did you mean --steps? See `numtok train --help`')
    """
    for end in reversed(list(_REMEDY.finditer(message))):
        parts = message[: end.start()], message[end.end() :]
        if all(part.count(mark) % 2 == 0 for part in parts for mark in ('"', "`")) and all(
            len(re.findall(r"(?<!\w)'|'(?!\w)", part)) % 2 == 0 for part in parts
        ):
            return parts
    return message, None


def unknown_kind(command: str, words: Sequence[str], error: UsageError) -> UsageError:
    """Return the error for a command whose first argument names no registry part.

    For ``probe``, the message shows the current form of a command line from an earlier version.

    >>> str(unknown_kind("probe", ["m", "d", "--sweep", "0"], UsageError("unknown probe 'm'")))
    "unknown probe 'm'. Put the probe before the model: `numtok probe vary MODEL ..."
    """
    if command != "probe" or not str(error).startswith("unknown probe "):
        return error
    options = {word.partition("=")[0] for word in words}
    forms = (form for option, form in _FORMER_PROBES.items() if option in options)
    form = next(forms, "examples MODEL ENCODED")
    return UsageError(f"{error}. Put the probe before the model: `numtok probe {form}`")


def usage_message(error: Any, described: Callable[[], str]) -> str | None:
    """Return the message for an exception from typer, or None for any other exception. The message
    is empty if the help was shown.

    described
        Returns the command whose help lists the options of the command that was called.
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
    problem, advice = _problem(error, context, message)
    if not advice or advice.endswith("?"):
        is_global = context is not None and context.parent is None
        path = "numtok" if is_global else described()
        advice = f"{advice} See `{path} --help`".lstrip()
    return f"{problem}. {advice}"


def _problem(error: Any, context: Any, message: str) -> tuple[str, str]:
    """Return what is wrong, in one clause, and advice or an empty string."""
    kind = type(error).__name__
    parameter = getattr(error, "param", None)
    if kind == "NoSuchOption":
        return f"unknown option {error.option_name}", _nearest(error, context)
    if kind == "BadOptionUsage" and "requires an argument" in message:
        return f"{error.option_name} needs a value", ""
    if kind == "MissingParameter" and parameter is not None:
        return f"{_name(parameter)} is missing", ""
    errors = getattr(error.__cause__, "errors", None)  # of pydantic
    problems: list[dict[str, Any]] = list(errors()) if callable(errors) else []
    if kind == "BadParameter" and parameter is not None and problems:
        found = problems[0]
        what = str(found.get("msg", "")).removeprefix("Value error, ")
        match = re.match(r"Input should be (?:a )?(?:valid )?(.*?)(?:, unable.*)?$", what)
        form = what if match is None else _FORMS.get(match[1], match[1])
        if choices := getattr(parameter.type_descriptor, "choices", None):
            *first, last = [str(getattr(choice, "value", choice)) for choice in choices]
            form = f"{', '.join(first)} or {last}"
        form = form.replace("greater than or equal to", "at least")
        value = found.get("input")
        whole = _whole(value) if form == "an integer" else None
        advice = "" if whole is None else f"Write {whole}"
        name, source = _name(parameter), context.get_parameter_source(parameter.name)
        if source is not None and source.name == "DEFAULT_MAP":
            name = f"{FILE}: [{context.info_name}] {name.removeprefix('--')}"
        return f"{name} must be {form} (got {value!r})", advice
    return message[0].lower() + message[1:], ""


def _whole(text: Any) -> str | None:
    """Return the integer that a text such as ``1e5`` means, or None if it means none."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return f"{number:.0f}" if number.is_integer() and not str(text).lstrip("-").isdigit() else None


def _nearest(error: Any, context: Any) -> str:
    command = getattr(context, "command", None)
    settings = getattr(command, "settings", {}).values()
    hidden = {f"--{name}" for setting in settings for name in setting.names[1:]}
    names = [
        name
        for parameter in getattr(command, "params", ())
        for name in parameter.opts
        if name.startswith("--") and name not in hidden
    ]
    near = get_close_matches(error.option_name, names, n=1, cutoff=0.7)
    return f"Did you mean {near[0]}?" if near else ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).strip("[]")
    return str(next((name for name in parameter.opts if name[:2] == "--"), parameter.opts[0]))
