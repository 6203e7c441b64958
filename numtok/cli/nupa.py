"""``numtok nupa``: the tables of NUPA from reports."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.nupa import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Print the tables of NUPA: exact match, digit match and d-length, by digits and by task.

    Three means, because the papers do not say which they print: of all answers, of the means of
    tasks, of the means of strata. What is no answer counts as wrong.

    Example: numtok nupa nupa-test@0123 --answers generated.jsonl
    """
    from numtok.cli.output.nupa import print_tables
    from numtok.stages.nupa import run

    print_tables(run(settings, open_store(context)), format)
