"""``numtok gen``."""

from typing import Annotated

import typer

from numtok.cli._shared import ForceOption, FormatOption, JsonOption, RestartOption, open_store
from numtok.cli.output.printing import Format

# A task has options of its own, which are read here, as is --help.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def command(
    context: typer.Context,
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK [TASK OPTIONS]",
            show_default=False,
            help="A task with its settings as options, or as a spec: arithmetic,operands=3. "
            "numtok gen TASK --help lists them.",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rows of all splits. Default: the task's, mostly 10,000."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, other rows.")] = 0,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Adding up to 1, or train is what is left. Default: the task's, mostly "
            "train=0.8,validation=0.1,test=0.1.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="REF", help="Of temperature: the field that it reads."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Default: the task's.")] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes. Default: by size and cores.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made, and how big.")
    ] = False,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
    help: Annotated[
        bool, typer.Option("--help", help="Show this message, or a task's options, and exit.")
    ] = False,
) -> None:
    """Make data from a seed, texts or a table of every split, and print the artifact's REF.

    Example: numtok gen arithmetic --operands 3 --samples 100000
    """
    from numtok.cli._tasks import print_help, task_spec
    from numtok.cli.output.progress import Bar

    if help:
        print_help(context, task)
        return

    from numtok.cli.output.gen import print_result
    from numtok.stages.gen import Config, run

    config = Config(
        task=task_spec(context, task),
        samples=samples,
        seed=seed,
        split=split,
        from_=from_,
        name=name,
        workers=workers,
        restart=restart,
        force=force,
        dry_run=dry_run,
    )
    with Bar(context.obj.quiet) as progress:
        result = run(config, open_store(context), progress)
    print_result(result, Format.JSON if json else format, context.obj.quiet)
