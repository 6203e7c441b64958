"""``numtok gc``: remove leftovers from killed runs."""

from typing import Annotated

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format, Size, print_table
from numtok.names import counted


def command(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing")
    ] = False,
    format: Format = Format.TABLE,
) -> None:
    """Remove leftovers from killed runs.

    Files of running processes are kept. A killed run whose leftovers were removed cannot resume; it
    starts from the beginning.

    Example: numtok gc --dry-run
    """
    leftovers = open_store(context).collect(remove=not dry_run)
    rows = [(str(each.path), Size(each.bytes)) for each in leftovers]
    size = Size(sum(each.bytes for each in leftovers))
    title = f"{'would remove' if dry_run else 'removed'} {counted(len(rows), 'leftover')}, {size}"
    print_table(title, ("removed", "bytes"), rows, format)
