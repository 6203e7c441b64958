"""Global options, access to the store, and option types that commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numtok.cli.output.printing import print_next, print_note

if TYPE_CHECKING:
    from numtok.store.store import Store

OneJsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object")]
RefArgument = Annotated[
    str,
    typer.Argument(
        metavar="REF", help="Artifact: name@version, name, kind/name, start of a version, or folder"
    ),
]


@dataclass(frozen=True)
class Invocation:
    """Global options of the current invocation, which every command receives as ``context.obj``."""

    store: Path
    quiet: bool

    def note(self, text: str) -> None:
        """Print a note on stderr, unless ``quiet`` is set."""
        if not self.quiet:
            print_note(text)

    def next(self, *commands: str) -> None:
        """Print suggested next commands on stderr if stdout and stderr are terminals, unless
        ``quiet`` is set."""
        print_next(*commands, quiet=self.quiet)


def open_store(context: typer.Context) -> "Store":
    """Open the store that the global options select."""
    from numtok.store.store import Store

    invocation: Invocation = context.obj
    return Store(invocation.store, invocation.note)
