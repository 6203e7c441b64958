"""``numtok probe``."""

import sys
from typing import Annotated

import typer

from numtok.cli._shared import ForceOption, RestartOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="REF of a model of texts.")],
    data: Annotated[
        str | None,
        typer.Argument(metavar="ENCODED", help="REF of data encoded as the model's were."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose rows. Default: test.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="What is predicted. Default: the only one.")
    ] = None,
    sweep: Annotated[
        int | None,
        typer.Option(metavar="N", help="Change the N-th number of one row, counted from 0."),
    ] = None,
    row: Annotated[
        str | None, typer.Option(metavar="ID", help="With --sweep: the row. Default: the first.")
    ] = None,
    from_: Annotated[
        float | None,
        typer.Option(
            "--from", metavar="X", help="Default: the least there in training; -10; a 100th of it."
        ),
    ] = None,
    to: Annotated[
        float | None,
        typer.Option(metavar="X", help="Default: the greatest there; 10; 100 times it."),
    ] = None,
    points: Annotated[
        int | None, typer.Option(metavar="N", help="Values between them. Default: 201.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="K", help="Numbers whose probabilities are followed. Default: 5."),
    ] = None,
    digits: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With which values are compared with seen ones. Default: 3."
        ),
    ] = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence", help="Instead: how sure it is of a row, as its last number changes."
        ),
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="With --confidence: of a text in place of a row."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --confidence: of labels, which. Default: first."),
    ] = None,
    embedding: Annotated[
        bool,
        typer.Option("--embedding", help="Instead: numbers after the first layer norm (value)."),
    ] = False,
    pca: Annotated[
        bool,
        typer.Option("--pca", help="Instead: principal components of the number tokens."),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    name: Annotated[
        str | None, typer.Option(help="Default: the model's, and what is looked at.")
    ] = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: Format = Format.TABLE,
) -> None:
    """Measure how a model follows its numbers: smoothly, or only to values that it has seen.

    Example: numtok probe era5-xval-nano era5-xval --split test --target temperature
    """
    from numtok.analysis.probing.probe_files import read
    from numtok.cli.output.probe import print_probe
    from numtok.cli.output.progress import Count
    from numtok.stages.probe import Config, run

    config = Config(
        model=model,
        encoded=data,
        split=split,
        target=target,
        row=row,
        sweep=sweep,
        low=from_,
        high=to,
        points=points,
        top=top,
        digits=digits,
        embedding=embedding,
        pca=pca,
        confidence=confidence,
        text=text,
        label=label,
        device=device,
        name=name,
        restart=restart,
        force=force,
    )
    with Count(context.obj.quiet) as progress:
        artifact = run(config, open_store(context), progress).artifact
    if format is not Format.TABLE:
        print_probe(read(artifact), format)
        return
    if not context.obj.quiet:
        print_probe(read(artifact), format, sys.stderr)
    print(artifact.ref)
