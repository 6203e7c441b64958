"""``numtok predict``: predict unknown numbers, labels or answers with a model."""

import sys
from contextlib import closing
from functools import partial

import typer

from numtok.cli._options import check_applies
from numtok.cli._shared import open_store
from numtok.settings.predict import Config


def command(context: typer.Context, settings: Config) -> None:
    """Predict unknown numbers, labels or answers.

    In a text, unknown numbers are written [?]. Each row is printed as JSON with a field
    "predicted". Rows of a table are printed as CSV with more columns.

    Example: numtok predict mine-xval-nano --text "it is [?] degrees at noon"
    """
    from numtok.cli.output.progress import Count
    from numtok.stages.predict import run

    check = partial(check_applies, context, settings)
    # On a terminal the lines show the progress, and a bar would appear between them.
    with (
        Count(context.obj.quiet or sys.stdout.isatty()) as progress,
        closing(run(settings, open_store(context), check)) as lines,
    ):
        for done, line in enumerate(lines, 1):
            sys.stdout.buffer.write(line)
            progress.show("predicting", done, None)
    sys.stdout.flush()
