"""The commands: their modules, and their current names."""

import pkgutil
from collections.abc import Mapping
from typing import Any

from numtok import cli, setting_names

#: Current command, with its options, for each earlier name. Earlier names still work and print a
#: note.
FORMER: Mapping[str, str] = {
    "errors": "diagnose",
    "faults": "diagnose",
    "nupa": "score --benchmark nupa",
}
#: Command for each synonym that is accepted.
_SYNONYMS: Mapping[str, str] = {
    "delete": "rm",
    "download": "fetch",
    "draw": "figure",
    "evaluate": "eval",
    "generate": "gen",
    "list": "ls",
    "plot": "figure",
    "remove": "rm",
    "tokenize": "encode",
}


def command_module(command: str) -> Any:
    """Import and return the module that implements a command, such as ``numtok.cli.encode``."""
    return pkgutil.resolve_name(f"numtok.cli.{command.replace('-', '_')}")


def current_name(name: str, old: str, new: str) -> str:
    """Return the current name of a command. For an earlier name, note that ``old`` is now called
    ``new``, in which ``{name}`` stands for the current name, and ``{command}`` for the name with
    its options."""
    if name in FORMER:
        setting_names.note_renamed(
            old, new.format(name=renamed_command(name), command=FORMER[name])
        )
    return renamed_command(name)


def renamed_command(name: str) -> str:
    """Return the current name of a command, without a note."""
    return FORMER.get(name, _SYNONYMS.get(name, name)).partition(" ")[0]


def command_names() -> list[str]:
    """Return the names of all commands: the files next to this one."""
    files = (module.name for module in pkgutil.iter_modules(cli.__path__) if not module.ispkg)
    return [file.replace("_", "-") for file in files if file != "main" and not file.startswith("_")]
