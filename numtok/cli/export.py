"""``numtok export``: write an artifact as a folder that other libraries load."""

import typer

from numtok.cli._shared import open_store
from numtok.settings.export import Config


def command(context: typer.Context, settings: Config) -> None:
    """Export to Hugging Face datasets or transformers.

    Writes a folder that includes a dataset card or a model card. A causal model can be loaded
    without numtok if it has a pretrained trunk and predicts only tokens. Loading any other model
    requires `import numtok.hf` first.

    Example: numtok export era5-xval --to era5
    """
    from numtok.stages.export import run

    run(settings, open_store(context))
    print(settings.to)
