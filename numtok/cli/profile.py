"""``numtok profile``."""

from typing import Annotated

import typer

from numtok.cli._shared import (
    LONGEST_LINE,
    DiskLimitOption,
    FormatOption,
    InputsArgument,
    JsonOption,
    MaxLineOption,
    NumeralsOption,
    SplitOption,
    TextFieldOption,
    WorkersOption,
    open_store,
)
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    inputs: InputsArgument,
    scheme: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Only these; can be given again.")
    ] = None,
    split: SplitOption = None,
    numerals: NumeralsOption = None,
    text_field: TextFieldOption = "text",
    workers: WorkersOption = None,
    on_error: Annotated[str, typer.Option(help="A bad row: fail, or skip it.")] = "fail",
    max_line: MaxLineOption = LONGEST_LINE,
    disk_limit: DiskLimitOption = None,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Show what the numbers are like, place by place, and what each scheme costs and loses.

    Example: numtok profile data.jsonl
    """
    from numtok.cli.output.profile import print_profile
    from numtok.cli.output.progress import Bar
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
        disk_limit=disk_limit,
    )
    with Bar(context.obj.quiet) as progress:
        profile = run(config, open_store(context), progress)
    given = {
        "--split": (split, None),
        "--numerals": (numerals, None),
        "--text-field": (text_field, "text"),
        "--on-error": (on_error, "fail"),
        "--max-line": (max_line, LONGEST_LINE),
    }
    options = [
        word
        for option, (value, default) in given.items()
        if value is not None and value != default
        for word in (option, str(value))
    ]
    print_profile(profile, options, Format.JSON if json else format)
