"""``numtok probe``: how a model follows the numbers that it reads."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.probe import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Measure how a model follows its numbers: smoothly, or only to values that it has seen.

    Example: numtok probe samples era5-xval-nano era5-xval --target temperature
    """
    from numtok.analysis.probing.probe_records import read
    from numtok.cli.output.probe import print_probe
    from numtok.cli.output.progress import Count
    from numtok.stages.probe import run

    with Count(context.obj.quiet) as progress:
        artifact = run(settings, open_store(context), progress).artifact
    print_probe(read(artifact), format, quiet=context.obj.quiet)
