"""``numtok fetch``."""

from functools import partial
from typing import Annotated

import typer

from numtok.cli._shared import (
    DiskLimitOption,
    ForceOption,
    Format,
    FormatOption,
    JsonOption,
    RestartOption,
    open_store,
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
            help="Of uci: airfoil, 'Kin 40K', a,b or all (of 25). Of numeracy600k: titles "
            "(default), comments. Of nupa: test (default), validation, train.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Of uci: a copy, a folder or a URL. Of numeracy600k, nupa: the JSON or a zip of "
            "it, a file, its folder or a URL. Of era5: a NetCDF or GRIB file, a zarr store of it "
            "(path, gs://, https://), arco (default), weatherbench2, weatherbench2-64x32.",
        ),
    ] = None,
    suite: Annotated[
        int | None, typer.Option(metavar="N", help="Of openml: 353 (CTR23), 269 (AMLB), ...")
    ] = None,
    task: Annotated[int | None, typer.Option(metavar="N", help="Of openml: one task.")] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of nupa: published (default), value-aware.")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Of nupa: some of them, as add+sub_Float.")
    ] = None,
    digits: Annotated[
        str | None, typer.Option(metavar="N..M", help="Of nupa: digit keys, as 1..5.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="published|short", help="Of nupa: short is without the hint at the form."
        ),
    ] = None,
    variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of era5. Default: 2m_temperature.")
    ] = None,
    area: Annotated[
        str | None, typer.Option(metavar="N,W,S,E", help="Of era5: degrees, as 58,-10,50,2.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="DAY..DAY", help="Of era5: 2019-03-01..2019-03-31.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="HOURS", help="Of era5: 6h is 0, 6, 12 and 18 UTC.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(metavar="refuse|drop", help="Of era5: days with missing values."),
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(metavar="masked|target", help="Of numeracy600k: what becomes of the number."),
    ] = None,
    placeholder: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Of numeracy600k: in place of the number. Default: _."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Of numeracy600k: by a hash of the text. Default: test=0.1667[,seed=0].",
        ),
    ] = None,
    on_error: Annotated[
        str | None,
        typer.Option(
            metavar="fail|skip", help="Of numeracy600k and nupa: rows that cannot be used."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Default: the source's and the set's.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Of era5: say what would be read, and how much.")
    ] = False,
    disk_limit: DiskLimitOption = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Bring public data sets: tables for regression, texts, or a field of weather; print each REF.

    Example: numtok fetch uci --set airfoil
    """
    from numtok.cli._fetched import print_result
    from numtok.cli._progress import Bar
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
