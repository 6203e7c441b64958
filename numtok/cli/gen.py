"""``numtok gen``: generate data for a task from a seed."""

from typing import Any

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.gen import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Generate synthetic data (arithmetic, orbits, ...).

    A task generates texts or a table, divided into splits, from a seed. Prints the REF of the
    artifact.

    Example: numtok gen arithmetic --operands 3 --rows 100000
    """
    from numtok.cli.output.gen import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.gen import run

    with Bar(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress)
    print_result(result, format, context.obj.quiet)


def about(task: Any) -> str:
    """Return a sentence for the help page of a task that states the defaults of ``--rows`` and
    ``--split``, or that these options do not apply."""
    from numtok.data.tasks.base import Task

    if task.own_splits is Task.own_splits:
        return f"Default: --rows {task.samples} --split {task.split}"
    return "--rows and --split do not apply to this task."
