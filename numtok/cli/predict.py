"""``numtok predict``."""

import sys

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
    from numtok.records import MODEL
    from numtok.stages.predict import run
    from numtok.training.model_json import reads_tables

    store = open_store(context)
    of_table = reads_tables(store.resolve(settings.model, kinds={MODEL}))
    to = "tables" if of_table else "texts"
    check_applies(context, settings, to, f"a model of {to}")
    # In a terminal the lines are progress enough, and a bar would stand among them.
    with Count(context.obj.quiet or sys.stdout.isatty()) as progress:
        for done, line in enumerate(run(settings, store), 1):
            sys.stdout.buffer.write(line)
            progress.show("predicting", done, None)
    sys.stdout.flush()
