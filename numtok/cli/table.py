"""``numtok table``: import a table for regression."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.table import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Import a table (CSV or Parquet) for regression.

    Prints the REF of the table artifact.

    Example: numtok table houses.csv --target price --drop id
    """
    from numtok.cli.output.table import print_result
    from numtok.stages.table import run

    result = run(settings, open_store(context))
    print_result(result.artifact, result.made, format, context.obj.quiet)
