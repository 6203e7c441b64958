"""``numtok fetch``."""

from functools import partial
from typing import Annotated

import typer

from numtok.cli._shared import (
    DiskLimitOption,
    ForceOption,
    FormatOption,
    JsonOption,
    RestartOption,
    open_store,
)
from numtok.cli.output.printing import Format

# Of which source an option is; the help shows those of each together.
_SEVERAL, _OPENML, _NUMERACY600K, _NUPA, _ERA5 = (
    f"Options of {sources}"
    for sources in ("several sources", "openml", "numeracy600k", "nupa", "era5")
)


def command(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="uci, openml, numeracy600k, nupa or era5.")
    ],
    set: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="uci: airfoil, 'Kin 40K', a,b or all (of 25); numeracy600k: titles (default), "
            "comments; nupa: test (default), validation, train.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="uci: a copy, a folder or a URL; numeracy600k, nupa: the JSON or a zip of it, a "
            "file, its folder or a URL; era5: a NetCDF or GRIB file, a zarr store of it (path, "
            "gs://, https://), arco (default), weatherbench2, weatherbench2-64x32.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    on_error: Annotated[
        str | None,
        typer.Option(
            metavar="fail|skip",
            help="numeracy600k, nupa: rows that cannot be used.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    suite: Annotated[
        int | None,
        typer.Option(metavar="N", help="353 (CTR23), 269 (AMLB), ...", rich_help_panel=_OPENML),
    ] = None,
    task: Annotated[
        int | None, typer.Option(metavar="N", help="One task.", rich_help_panel=_OPENML)
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(
            metavar="masked|target",
            help="What becomes of the number.",
            rich_help_panel=_NUMERACY600K,
        ),
    ] = None,
    placeholder: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="In place of the number. Default: _.",
            rich_help_panel=_NUMERACY600K,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="By a hash of the text. Default: test=0.1667[,seed=0].",
            rich_help_panel=_NUMERACY600K,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="published (default), value-aware.", rich_help_panel=_NUPA
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Some of them, as add+sub_Float.", rich_help_panel=_NUPA
        ),
    ] = None,
    digits: Annotated[
        str | None,
        typer.Option(metavar="N..M", help="Digit keys, as 1..5.", rich_help_panel=_NUPA),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="published|short",
            help="short is without the hint at the form.",
            rich_help_panel=_NUPA,
        ),
    ] = None,
    variable: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Default: 2m_temperature.", rich_help_panel=_ERA5),
    ] = None,
    area: Annotated[
        str | None,
        typer.Option(metavar="N,W,S,E", help="Degrees, as 58,-10,50,2.", rich_help_panel=_ERA5),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="DAY..DAY", help="2019-03-01..2019-03-31.", rich_help_panel=_ERA5),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(metavar="HOURS", help="6h is 0, 6, 12 and 18 UTC.", rich_help_panel=_ERA5),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="refuse|drop", help="Days with missing values.", rich_help_panel=_ERA5
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would be read, and how much.", rich_help_panel=_ERA5
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Default: the source's and the set's.")] = None,
    disk_limit: DiskLimitOption = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Bring public data sets: tables for regression, texts, or a field of weather; print each REF.

    Example: numtok fetch uci --set airfoil
    """
    from numtok.cli.output.fetch import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.fetch import Config, Result, run

    options = {
        "set": set,
        "from_": from_,
        "suite": suite,
        "task": task,
        "preset": preset,
        "tasks": tasks,
        "digits": digits,
        "prompt": prompt,
        "variable": variable,
        "area": area,
        "period": period,
        "every": every,
        "missing": missing,
        "number": number,
        "placeholder": placeholder,
        "split": split,
        "on_error": on_error,
    }
    config = Config(
        source=source,
        options={key: value for key, value in options.items() if value is not None},
        name=name,
        restart=restart,
        force=force,
        dry_run=dry_run,
        disk_limit=disk_limit,
    )
    made: list[Result] = []
    try:
        with Bar(context.obj.quiet) as bar:
            for result in run(config, open_store(context), partial(bar, rows=0)):
                made.append(result)
    finally:  # what stopped one table has not undone the others
        for result in made:
            print_result(result, Format.JSON if json else format, context.obj.quiet)
