"""``numtok features``: make a table of features from texts with a pretrained model."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.features import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Turn texts into features with a frozen model.

    Runs a pretrained model over the texts once, without their targets, and stores its hidden states
    as a table. Train a head on it with `numtok train`. Prints the REF of the table artifact.

    Example: numtok features rooms.jsonl --model hf:models/minilm --split test=0.2
    """
    from numtok.cli.output.progress import Count
    from numtok.cli.output.table import print_result
    from numtok.stages.features import run

    with Count(context.obj.quiet) as progress:
        result = run(settings, open_store(context), progress)
    print_result(result.artifact, result.made, format, context.obj.quiet)
