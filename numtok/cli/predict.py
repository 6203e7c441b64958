"""``numtok predict``."""

import sys
from typing import Annotated

import typer

from numtok.cli._shared import (
    DecodeOption,
    DrawsOption,
    PointOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    open_store,
    refuse,
)
from numtok.errors import UsageError

_OF_TEXTS = ("text", "text_field", "fill", "decode", "batch")
_OF_TABLES = ("fold", "temperature", "top_k", "top_p")


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="REF of a model.")],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Texts: JSONL with one in each line, plain, .gz, .zst; - for standard input. "
            "Tables: CSV or Parquet, without the target.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="In place of a file; can be given again."),
    ] = None,
    text_field: Annotated[
        str, typer.Option(metavar="NAME", help="The field that holds the text.")
    ] = "text",
    fill: Annotated[
        str | None,
        typer.Option(
            help="Masked models: parallel (the default), or left-to-right. Autoregressive ones: "
            "answers, which are written where the text ends."
        ),
    ] = None,
    decode: DecodeOption = "constrained",
    point: PointOption = None,
    draws: DrawsOption = 0,
    temperature: TemperatureOption = 1.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    fold: Annotated[
        int | None, typer.Option(metavar="K", help="Tables: whose model of several.")
    ] = None,
    batch: Annotated[
        int, typer.Option(metavar="ROWS", help="Rows at a time; fewer where memory is out.")
    ] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Say the numbers that are not known, written [?] in a text; or its label, or how it goes on.

    Each row comes out as it was, as JSON, with a field predicted. Of a table's file, rows come out
    as CSV with columns more.

    Example: numtok predict mine-xval-nano --text "it is [?] degrees at noon"
    """
    from numtok.cli._fitted import options_of, predicted_rows
    from numtok.cli.output.progress import Count
    from numtok.records import MODEL
    from numtok.stages.predict import Config, Query, outgoing, read_rows, run
    from numtok.training.regressor_files import is_regressor

    if (file is None) == (not text):
        raise UsageError("predict reads one of FILE and --text; give a file of rows, - or a text")
    if text:
        refuse(context, ("text_field",), "--text")
    store = open_store(context)
    if is_regressor(store.resolve(model, kinds={MODEL})):
        refuse(context, _OF_TEXTS, "a model of tables")
        options = options_of(point or "median", draws, temperature, top_k, top_p)
        lines = predicted_rows(store, model, str(file), fold, options, device)
    else:
        refuse(context, _OF_TABLES, "a model of texts")
        rows = map(Query.of_text, text) if text else read_rows(str(file), text_field)
        config = Config(model, fill, decode, point or "mode", draws, batch, device)
        lines = (outgoing(row, said) for row, said in run(config, store, rows, store.note))
    # In a terminal the lines are progress enough, and a bar would stand among them.
    with Count(context.obj.quiet or sys.stdout.isatty()) as progress:
        for done, line in enumerate(lines, 1):
            sys.stdout.buffer.write(line)
            progress.show("predicting", done, None)
    sys.stdout.flush()
