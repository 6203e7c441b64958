"""``numtok demo``: encode a sample with every scheme, and compare three of them on arithmetic."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from numtok.cli._shared import open_store


def command(
    context: typer.Context,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Training steps for each of three schemes", min=1)
    ] = 500,
) -> None:
    """Compare encodings on sums and products, in a minute.

    Encodes a sample of weather data with every scheme. Then it generates arithmetic, and trains and
    compares three models. Each command is printed before it runs, so that you can copy it.

    Example: numtok demo
    """
    from numtok.cli.output.demo import demo_parts
    from numtok.cli.output.printing import print_parts
    from numtok.sweeps.demo import run

    store: Path = context.obj.store
    shown = ["--store", str(store)] if store != Path("artifacts") else []

    def announce(words: Sequence[str]) -> None:
        print(f"$ {shlex.join(['numtok', *words, *shown])}", flush=True)

    result = run(steps, open_store(context), announce, lambda made: print(made, flush=True))
    print()
    print_parts(demo_parts(result))
