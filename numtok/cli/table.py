"""``numtok table``."""

import csv
from typing import Annotated

import typer

from numtok.cli._shared import ForceOption, FormatOption, JsonOption, RestartOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .csv with a header, or .parquet.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="By a hash of the row's number. Default: the columns split or split_0, split_1, "
            "..., or else test=0.2,validation=0.1.",
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help='Columns to take, "A,B" if it has a comma. Default: all others.',
        ),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Columns to leave, such as an id.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Default: the file's.")] = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Turn a table of your own into a table artifact for regression, and print its REF.

    Example: numtok table houses.csv --target price --drop id
    """
    from numtok.cli.output.table import print_result
    from numtok.stages.table import Config, run

    config = Config(
        path=file,
        target=target,
        split=split,
        features=_names(features),
        drop=_names(drop),
        name=name,
        restart=restart,
        force=force,
    )
    result = run(config, open_store(context))
    print_result(result.artifact, result.made, Format.JSON if json else format, context.obj.quiet)


def _names(given: str | None) -> tuple[str, ...]:
    """A record of a CSV: names with a comma stand in quotes."""
    return tuple(next(csv.reader([given]))) if given else ()
