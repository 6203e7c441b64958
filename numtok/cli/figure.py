"""``numtok figure``: pictures of reports and probes."""

import typer

from numtok.cli._shared import open_store
from numtok.settings.figure import Config


def command(context: typer.Context, settings: Config) -> None:
    """Draw reports and probes: predictions against truth, curves, a metric over a setting.

    Example: numtok figure truth sums-xval sums-p1000 --out truth.png
    """
    from numtok.stages.figure import run

    run(settings, open_store(context))
    print(settings.out)
