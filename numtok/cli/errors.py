"""``numtok errors``: where predictions go wrong: sign, mantissa, exponent."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.errors import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Show where predictions go wrong: in sign, mantissa or exponent, or in how these combine.

    One part alone, or several of them: of 1.00, 1.01 has a wrong mantissa, 0.1 a wrong exponent.
    Across a power of ten both change: 0.999 for 1.00 is a unit of the last digit off and right,
    0.97 is wrong in several parts. So is 0 for another number, or the reverse. Two reports of one
    model, filled in parallel and from left to right, are compared number by number.

    Example: numtok errors era5-p1000-parallel era5-p1000-left-to-right
    """
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import run

    print_errors(run(settings, open_store(context)), format)
