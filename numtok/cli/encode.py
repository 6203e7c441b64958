"""``numtok encode``: encode texts as Parquet shards of tokens and numbers."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.encode import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Encode texts with a number scheme.

    Writes Parquet shards of tokens and numbers, and prints the REF of the artifact.

    Example: numtok encode --scheme p1000 data.jsonl
    """
    from numtok.cli.output.encode import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.encode import run

    with Bar(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress)
    print_result(result, format, context.obj.quiet)
