"""``numtok rm``: remove an artifact."""

from typing import Annotated

import typer

from numtok.cli._shared import RefArgument, open_store


def command(
    context: typer.Context,
    ref: RefArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Remove it even if another artifact was made from it")
    ] = False,
) -> None:
    """Remove an artifact.

    Example: numtok rm era5-p1000@3f2a9c1b5d7e8f60
    """
    store = open_store(context)
    artifact = store.resolve(ref)
    store.remove(artifact, force=force)
    print(f"removed {artifact.kind}/{artifact.ref}")
