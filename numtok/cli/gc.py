"""``numtok gc``: what killed runs left behind, removed."""

from typing import Annotated

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format, Size, counted, print_table


def command(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    format: Format = Format.TABLE,
) -> None:
    """Remove what killed runs left behind; what a running process works on stays.

    A killed run that is started again goes on from there; after this it begins anew.

    Example: numtok gc --dry-run
    """
    swept = open_store(context).collect(remove=not dry_run)
    rows = [(str(one.path), Size(one.bytes)) for one in swept]
    size = Size(sum(one.bytes for one in swept))
    title = f"{'would remove' if dry_run else 'removed'} {counted(len(rows), 'leftover')}, {size}"
    print_table(title, ("removed", "bytes"), rows, format)
