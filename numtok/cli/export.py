"""``numtok export``: an artifact as a folder that other libraries open."""

import typer

from numtok.cli._shared import open_store
from numtok.settings.export import Config


def command(context: typer.Context, settings: Config) -> None:
    """Write encoded data as a folder that the library datasets opens, with a dataset card.

    Example: numtok export era5-xval --to era5
    """
    from numtok.stages.export import run

    run(settings, open_store(context))
    print(settings.to)
