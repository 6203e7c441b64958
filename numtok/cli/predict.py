"""``numtok predict``."""

import sys
from typing import Annotated

import typer

from numtok.cli._shared import open_store
from numtok.errors import UsageError


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="REF of a model of texts.")],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="JSONL with a text in each line, plain, .gz, .zst; - for stdin."
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
    decode: Annotated[
        str, typer.Option(help="constrained by the scheme's grammar, or free.")
    ] = "constrained",
    point: Annotated[
        str, typer.Option(help="mode (greedy), or the distribution's median, mean.")
    ] = "mode",
    draws: Annotated[
        int, typer.Option(metavar="N", help="Numbers drawn where a distribution is not exact.")
    ] = 0,
    batch: Annotated[
        int, typer.Option(metavar="ROWS", help="Rows at a time; fewer where memory is out.")
    ] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Say the numbers that are not known, written [?] in a text; or its label, or how it goes on.

    Each row comes out as it was, as JSON, with a field predicted.

    Example: numtok predict mine-xval-nano --text "it is [?] degrees at noon"
    """
    from numtok.cli._progress import Count
    from numtok.stages.predict import Asked, Config, outgoing, read_rows, run

    if (file is None) == (not text):
        raise UsageError("predict reads one of FILE and --text; give a file of JSONL, - or a text")
    rows = map(Asked.of_text, text) if text else read_rows(str(file), text_field)
    config = Config(model, fill, decode, point, draws, batch, device)
    store = open_store(context)
    with Count(context.obj.quiet) as progress:
        for done, (row, said) in enumerate(run(config, store, rows, store.note), 1):
            sys.stdout.buffer.write(outgoing(row, said))
            progress.show("predicting", done, None)
    sys.stdout.flush()
