"""``numtok figure``: plot reports, probes and models."""

import typer

from numtok.cli._shared import open_store
from numtok.settings.figure import Config


def command(context: typer.Context, settings: Config) -> None:
    """Plot reports, probes or models.

    Figures show, for example, predictions plotted against true values, learning curves, or a metric
    plotted against a setting.

    Example: numtok figure truth sums-xval sums-p1000 --out truth.png
    """
    from numtok.stages.figure import run

    run(settings, open_store(context))
    print(settings.out)
