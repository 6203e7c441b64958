"""The names of plugins in the help of options that take a name from a registry."""

from typing import Any

import typer

from numtok.plugins import registries
from numtok.registry import Registry

# Which registry an option is of, whatever command has it; an argument, of one command.
_OPTIONS = {
    "scheme": "schemes",
    "normalize": "normalizers",
    "text_tokenizer": "text_tokenizers",
    "embedder": "embedders",
    "head": "heads",
    "objective": "objectives",
    "metric": "metrics",
}
_ARGUMENTS = {("fetch", "source"): "sources", ("figure", "kind"): "figures"}


def name_plugins(context: typer.Context) -> None:
    """Add to the help of the command that is called which plugins there are.

    Their names are those of their files: none is imported, nor what it needs.
    """
    name = context.invoked_subcommand or ""
    command = getattr(context.command, "commands").get(name)  # noqa: B009 (typer's group)
    for parameter in command.params if command is not None else ():
        key = str(parameter.name)
        if (folder := _ARGUMENTS.get((name, key)) or _OPTIONS.get(key)) is None:
            continue
        if plugins := Registry[Any](registries()[folder], key).plugins():
            parameter.help = f"{parameter.help or ''} Plugins: {', '.join(plugins)}.".strip()
