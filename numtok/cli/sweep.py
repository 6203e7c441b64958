"""``numtok sweep``: train and compare every combination of settings in a file."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.sweep import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Train and compare every combination of settings.

    A TOML file lists the values to try for each setting. Existing artifacts are reused, so
    running an interrupted sweep again resumes it. A failed run does not stop the others; the first
    failure determines the exit code.

    Example: numtok sweep schemes.toml
    """
    from numtok.cli.output.pages.write import check_page, write_page
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import run

    check_page(settings.html)
    store = open_store(context)
    with Runs(context.obj.quiet) as progress:
        result = run(settings, store, progress)
    print_sweep(result, format)
    if settings.html is not None:
        from numtok.cli.output.pages.sweep import sweep_page

        write_page(
            settings.html, sweep_page(result, settings.file, store.resolve), context.obj.note
        )
    if result.failed:
        raise typer.Exit(result.failed[0].problem.exit_code)
