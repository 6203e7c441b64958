"""``numtok sweep``: all combinations that a file names, trained and compared."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.sweep import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Train and evaluate every combination that a file names, and compare them.

    What is there already is found again, so a sweep that was stopped goes on. Runs that fail stop
    no others; the exit code is then that of the first of them.

    Example: numtok sweep schemes.toml
    """
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import run

    with Runs(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress)
    print_sweep(result, format)
    if result.failed:
        raise typer.Exit(result.failed[0].problem.exit_code)
