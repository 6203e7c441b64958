"""``numtok fetch``."""

from functools import partial
from typing import Annotated

import typer

from numtok.cli._shared import (
    ForceOption,
    Format,
    FormatOption,
    JsonOption,
    RestartOption,
    open_store,
)


def command(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="uci or openml.")],
    set: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of uci: airfoil, 'Kin 40K', a,b or all (of 25)."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="PLACE", help="Of uci: a copy, a folder or a URL."),
    ] = None,
    suite: Annotated[
        int | None, typer.Option(metavar="N", help="Of openml: 353 (CTR23), 269 (AMLB), ...")
    ] = None,
    task: Annotated[int | None, typer.Option(metavar="N", help="Of openml: one task.")] = None,
    name: Annotated[str | None, typer.Option(help="Default: the source's and the set's.")] = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Bring public data sets and make tables of them for regression; print each REF.

    Example: numtok fetch uci --set airfoil
    """
    from numtok.cli._progress import Bar
    from numtok.cli._tabled import print_result
    from numtok.stages.fetch import Config, Result, run

    options = {"set": set, "from_": from_, "suite": suite, "task": task}
    config = Config(
        source=source,
        options={key: value for key, value in options.items() if value is not None},
        name=name,
        restart=restart,
        force=force,
    )
    made: list[Result] = []
    try:
        with Bar(context.obj.quiet) as bar:
            for result in run(config, open_store(context), partial(bar, rows=0)):
                made.append(result)
    finally:  # what stopped one table has not undone the others
        for result in made:
            print_result(
                result.artifact, result.made, Format.JSON if json else format, context.obj.quiet
            )
