"""``numtok fetch``: download public data sets as artifacts."""

from functools import partial

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.fetch import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Download public data sets.

    A source provides tables for regression, texts, or weather fields. Prints the REF of each
    artifact.

    Example: numtok fetch uci --set airfoil
    """
    from numtok.cli.output.fetch import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.fetch import Result, run

    made: list[Result] = []
    try:
        with Bar(context.obj.quiet) as bar:
            for result in run(settings, open_store(context), partial(bar, rows=0)):
                made.append(result)
    finally:  # an error in one table does not undo the others
        for result in made:
            print_result(result, format, context.obj.quiet)
