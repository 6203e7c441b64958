"""``numtok sweep``."""

from typing import Annotated

import typer

from numtok.cli._shared import FormatOption, JsonOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE.toml", help="What to try; see docs/guide/sweep.md.")
    ],
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE.KEY=VALUE",
            help="In place of what the file says: train.steps=20, 'train.seed=[0, 1]'; repeatable.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Runs side by side. Default: one a core; one with a GPU or a budget in minutes.",
        ),
    ] = None,
    max_runs: Annotated[
        int, typer.Option(metavar="N", help="Refuse a file that asks for more runs.")
    ] = 10_000,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Train and evaluate every combination that a file names, and compare them.

    What is there already is found again, so a sweep that was stopped goes on. Runs that fail stop
    no others; the exit code is then that of the first of them.

    Example: numtok sweep schemes.toml
    """
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import Config, run

    config = Config(file, tuple(set or ()), jobs, max_runs)
    with Runs(context.obj.quiet) as progress:
        result = run(config, open_store(context), progress)
    print_sweep(result, Format.JSON if json else format)
    if result.failed:
        raise typer.Exit(result.failed[0].problem.exit_code)
