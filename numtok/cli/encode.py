"""``numtok encode``."""

from typing import Annotated

import typer

from numtok.cli._shared import (
    LONGEST_LINE,
    DiskLimitOption,
    ForceOption,
    FormatOption,
    InputsArgument,
    JsonOption,
    MaxLineOption,
    NumeralsOption,
    RestartOption,
    SplitOption,
    TextFieldOption,
    WorkersOption,
    given,
    open_store,
)
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    inputs: InputsArgument,
    scheme: Annotated[
        str | None, typer.Option(metavar="SPEC", help="p1000, xval, p10,exponents=-10..10 ...")
    ] = None,
    like: Annotated[
        str | None, typer.Option(metavar="REF", help="Encode exactly as an earlier artifact.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Default: the input's and the scheme's.")] = None,
    split: SplitOption = None,
    normalize: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="none, scale:5, affine, unit, signed-log; by scheme."),
    ] = None,
    text_tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="words[:N], structure[:N], bpe:N, bytes, or a tokenizer.json."
        ),
    ] = None,
    numerals: NumeralsOption = None,
    text_field: TextFieldOption = "text",
    workers: WorkersOption = None,
    on_error: Annotated[str, typer.Option(help="A bad row: fail, or skip and keep it.")] = "fail",
    on_clip: Annotated[str, typer.Option(help="A number out of range: count, or error.")] = "count",
    max_line: MaxLineOption = LONGEST_LINE,
    disk_limit: DiskLimitOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made, and how big.")
    ] = False,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Turn texts into Parquet shards of tokens and numbers, and print the artifact's REF.

    Example: numtok encode --scheme p1000 data.jsonl
    """
    from numtok.cli.output.encode import print_result
    from numtok.cli.output.progress import Bar
    from numtok.stages.encode import Config, run

    if like is not None:  # on the command line, it beats what numtok.toml says of an encoding
        scheme = given(context, "scheme", scheme)
        numerals = given(context, "numerals", numerals)
        normalize = given(context, "normalize", normalize)
        text_tokenizer = given(context, "text_tokenizer", text_tokenizer)
    config = Config(
        inputs=tuple(inputs),
        scheme=scheme,
        like=like,
        name=name,
        split=split,
        numerals=numerals,
        normalize=normalize,
        text_tokenizer=text_tokenizer,
        text_field=text_field,
        workers=workers,
        on_error=on_error,
        on_clip=on_clip,
        max_line=max_line,
        disk_limit=disk_limit,
        restart=restart,
        force=force,
        dry_run=dry_run,
    )
    with Bar(context.obj.quiet) as progress:
        result = run(config, open_store(context), progress)
    print_result(result, Format.JSON if json else format, context.obj.quiet)
