"""``numtok export``: an artifact as a folder that other libraries open."""

import typer

from numtok.cli._shared import open_store
from numtok.settings.export import Config


def command(context: typer.Context, settings: Config) -> None:
    """Write encoded data, or a model, as a folder that datasets or transformers opens, with a card.

    A causal model of tokens alone on a pretrained trunk needs no numtok there; others need
    `import numtok.hf` before they are loaded.

    Example: numtok export era5-xval --to era5
    """
    from numtok.stages.export import run

    run(settings, open_store(context))
    print(settings.to)
