"""``numtok train``: train a model on encoded data or a table."""

import sys
from dataclasses import replace

import typer

from numtok.cli._options import options_check
from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.train import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Train a model on encoded data or on a table.

    Prints the model's REF. To resume after Ctrl-C, run the command again.

    Example: numtok train era5-xval --minutes 5
    """
    from numtok.cli.output.train import TrainingBar, print_result
    from numtok.stages.train import run

    if settings.target is not None:
        settings = replace(settings, data=_table(context, settings.data, settings.target))
    with TrainingBar(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress, options_check(context, settings))
    if result.prints:
        print_result(result, format, context.obj.quiet)


def _table(context: typer.Context, path: str, target: str) -> str:
    """Return the REF of a file's table artifact, which is created if it does not exist."""
    from numtok.stages.table import table_of

    table = table_of(path, target, open_store(context))
    if not context.obj.quiet:
        print(f"numtok: {path} is the table {table.ref}", file=sys.stderr)
    return table.ref
