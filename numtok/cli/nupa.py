"""``numtok nupa``: print tables of scores on the NUPA benchmark."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.nupa import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Score a report or answers on the NUPA benchmark.

    Prints exact match, digit match and d-length (difference in the number of digits), by number of
    digits and by task. There are three means, because the NUPA papers do not specify which one they
    use: over all answers, over the task means, and over the stratum means. A stratum is a task with
    one number of digits. A missing answer counts as wrong.

    Example: numtok nupa nupa-test@0123 --answers generated.jsonl
    """
    from numtok.cli.output.nupa import print_tables
    from numtok.stages.nupa import run

    print_tables(run(settings, open_store(context)), format)
