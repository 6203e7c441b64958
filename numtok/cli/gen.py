"""``numtok gen``: data of a task, made from a seed."""

from typing import Any

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.gen import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Make data from a seed, texts or a table of every split, and print the artifact's REF.

    Example: numtok gen arithmetic --operands 3 --samples 100000
    """
    from numtok.cli.output.gen import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.gen import run

    with Bar(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress)
    print_result(result, format, context.obj.quiet)


def about(task: Any) -> str:
    """What the help of a task says besides."""
    from numtok.data.tasks.base import Task

    if task.own_splits is Task.own_splits:
        return f"Default: --samples {task.samples} --split {task.split}"
    return "--samples and --split mean nothing here."
