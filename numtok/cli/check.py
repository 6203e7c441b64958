"""``numtok check``: run the contract suites on registry parts and plugins."""

from collections import Counter
from typing import Annotated

import typer

from numtok.cli.output.printing import Format, print_table
from numtok.errors import NegativeVerdict
from numtok.names import counted


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
    from numtok.plugin_checks import check_spec

    found = [(spec, result) for spec in names for result in check_spec(kind, spec)]
    rows = [
        (spec, result.name, "ok" if result.passed else "BROKEN", result.message)
        for spec, result in found
    ]
    broken = Counter(spec for spec, result in found if not result.passed)
    print_table("contract suite", (kind, "check", "result", "message"), rows, format)
    if broken:
        what = ", ".join(f"{spec} ({counted(count, 'check')})" for spec, count in broken.items())
        raise NegativeVerdict(f"{kind} contract not met: {what}. The table lists the failed checks")
