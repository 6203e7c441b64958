"""``numtok probe``: measure how a model's outputs depend on the numbers in its input."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.probe import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Measure how predictions depend on the input numbers.

    A probe shows whether predictions vary smoothly or jump between values in the training data.

    Example: numtok probe examples era5-xval-nano era5-xval --target temperature
    """
    from numtok.analysis.probing.probe_records import read
    from numtok.cli.output.probe import print_probe
    from numtok.cli.output.progress import Count
    from numtok.stages.probe import run

    with Count(context.obj.quiet) as progress:
        artifact = run(settings, open_store(context), progress).artifact
    print_probe(read(artifact), format, quiet=context.obj.quiet)
