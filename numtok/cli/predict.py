"""``numtok predict``: what a model says for numbers, labels or answers that nobody knows."""

import sys
from contextlib import closing
from functools import partial

import typer

from numtok.cli._options import check_applies
from numtok.cli._shared import open_store
from numtok.settings.predict import Config


def command(context: typer.Context, settings: Config) -> None:
    """Say the numbers that are not known, written [?] in a text; or its label, or how it goes on.

    Each row comes out as it was, as JSON, with a field predicted. Of a table's file, rows come out
    as CSV with columns more.

    Example: numtok predict mine-xval-nano --text "it is [?] degrees at noon"
    """
    from numtok.cli.output.progress import Count
    from numtok.stages.predict import run

    check = partial(check_applies, context, settings)
    # In a terminal the lines are progress enough, and a bar would stand among them.
    with (
        Count(context.obj.quiet or sys.stdout.isatty()) as progress,
        closing(run(settings, open_store(context), check)) as lines,
    ):
        for done, line in enumerate(lines, 1):
            sys.stdout.buffer.write(line)
            progress.show("predicting", done, None)
    sys.stdout.flush()
