"""``numtok check``: parts of the registries, or of a plugin, by their contract suites."""

from typing import Annotated

import typer

from numtok.cli.output.printing import Format


def command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="What it is: scheme, head, task, metric, ...")
    ],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Its name, with settings or without: mdn:5."),
    ],
    format: Format = Format.TABLE,
) -> None:
    """Run the contract suite on parts of numtok, or on a plugin: does it do what it must?

    Every kind has one: it calls each member on small made-up data and compares the answers with
    what base.py of that kind says. Exit code 1 where one is broken.

    Example: numtok check head mdn:5
    """
    from numtok.cli.output.checks import print_checks

    print_checks(kind, names, format)
