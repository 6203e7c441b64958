"""``numtok errors``."""

from typing import Annotated

import typer

from numtok.cli._shared import FormatOption, JsonOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    reports: Annotated[list[str], typer.Argument(metavar="REPORT...", help="REFs of reports.")],
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only numbers of that target. Default: all.")
    ] = None,
    digits: Annotated[
        int, typer.Option(metavar="N", help="Significant digits that numbers are compared with.")
    ] = 3,
    top: Annotated[
        int, typer.Option(metavar="K", help="Numbers predicted too often that are listed.")
    ] = 5,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Show where predictions go wrong: in sign, mantissa or exponent, or in how these combine.

    One part alone, or several of them: of 1.00, 1.01 has a wrong mantissa, 0.1 a wrong exponent.
    Across a power of ten both change: 0.999 for 1.00 is a unit of the last digit off and right,
    0.97 is wrong in several parts. So is 0 for another number, or the reverse. Two reports of one
    model, filled in parallel and from left to right, are compared number by number.

    Example: numtok errors era5-p1000-parallel era5-p1000-left-to-right
    """
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import Config, run

    found = run(Config(tuple(reports), target, digits, top), open_store(context))
    print_errors(found, Format.JSON if json else format)
