"""``numtok gc``."""

import typer

from numtok.cli._shared import (
    Format,
    FormatOption,
    JsonOption,
    Size,
    counted,
    open_store,
    print_table,
)


def command(
    context: typer.Context, format: FormatOption = Format.TABLE, json: JsonOption = False
) -> None:
    """Remove what killed runs left behind; what a running process works on stays.

    Example: numtok gc
    """
    swept = open_store(context).collect()
    rows = [(str(one.path), Size(one.bytes)) for one in swept]
    title = f"removed {counted(len(rows), 'leftover')}, {Size(sum(one.bytes for one in swept))}"
    print_table(title, ("removed", "bytes"), rows, Format.JSON if json else format)
