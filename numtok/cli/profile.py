"""``numtok profile``."""

from typing import Annotated

import typer

from numtok.cli._shared import Format, FormatOption, JsonOption, open_store


def command(
    context: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="As for encode: JSONL (.jsonl, .jsonl.gz, .jsonl.zst), .parquet, a folder of "
            "them, - for standard input, the REF of a data artifact; or split=PATH.",
        ),
    ],
    scheme: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Only these; can be given again.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="SHARES", help="test=0.1[,seed=S]: by a hash of the id.")
    ] = None,
    numerals: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="default, xval, or default with thousands=yes, percent=yes."
        ),
    ] = None,
    text_field: Annotated[str, typer.Option(metavar="NAME", help="Where the text is.")] = "text",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes. Default: by size and cores.")
    ] = None,
    on_error: Annotated[str, typer.Option(help="A bad row: fail, or skip it.")] = "fail",
    max_line: Annotated[
        int, typer.Option(metavar="BYTES", show_default="256 MiB", help="Longest line.")
    ] = 256 << 20,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Show what the numbers are like, place by place, and what each scheme costs and loses.

    Example: numtok profile data.jsonl
    """
    from numtok.cli._profiled import print_profile
    from numtok.cli._progress import Bar
    from numtok.stages.profile import Config, run

    config = Config(
        inputs=tuple(inputs),
        schemes=tuple(scheme or ()),
        split=split,
        numerals=numerals,
        text_field=text_field,
        workers=workers,
        on_error=on_error,
        max_line=max_line,
    )
    with Bar(context.obj.quiet) as progress:
        profile = run(config, open_store(context), progress)
    given = {
        "--split": (split, None),
        "--numerals": (numerals, None),
        "--text-field": (text_field, "text"),
        "--on-error": (on_error, "fail"),
    }
    options = [
        word
        for option, (value, default) in given.items()
        if value is not None and value != default
        for word in (option, value)
    ]
    print_profile(profile, options, Format.JSON if json else format)
