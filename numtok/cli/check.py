"""``numtok check``: run the contract suites on registry parts and plugins."""

from typing import Annotated

import typer

from numtok.cli.output.printing import Format


def command(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="Kind of part: scheme, head, task, metric, ...")
    ],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Name of the part, with or without settings: mdn:5"),
    ],
    format: Format = Format.TABLE,
) -> None:
    """Test a plugin or a built-in part.

    The contract suite for KIND calls each part on small generated data and compares the results
    with the contract. Exits with code 1 if a check fails.

    Example: numtok check head mdn:5
    """
    from numtok.cli.output.checks import print_checks

    print_checks(kind, names, format)
