"""``numtok sweep``."""

from typing import Annotated

import typer

from numtok.cli._shared import Format, FormatOption, JsonOption, open_store


def command(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE.toml", help="What to try; see the README, Sweep.")
    ],
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Runs side by side. Default: one a core, one with a GPU."),
    ] = None,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Train and evaluate every combination that a file names, and compare them.

    What was made before is found again, so a sweep that was stopped goes on.

    Example: numtok sweep schemes.toml
    """
    from numtok.cli._swept import Runs, print_sweep
    from numtok.stages.sweep import Config, run

    with Runs(context.obj.quiet) as progress:
        result = run(Config(file, jobs), open_store(context), progress)
    print_sweep(result, Format.JSON if json else format)
    if result.failed:
        raise result.failed[0].problem
