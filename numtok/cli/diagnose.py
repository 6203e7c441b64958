"""``numtok diagnose``: show which part of each number is wrong: sign, mantissa or exponent."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.diagnose import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Show which parts of predicted numbers are wrong.

    The parts are the sign, the mantissa and the exponent. For a true value of 1.00, the prediction
    1.01 has a wrong mantissa, and 0.1 has a wrong exponent. Around a power of ten, both can differ:
    0.999 counts as correct, because it differs by only one unit in the last digit, but 0.97 is
    wrong in several parts. Predicting 0 for a nonzero value, or the reverse, is also wrong in
    several parts.

    Two reports on one model, one with numbers filled in parallel and one from left to right, are
    compared number by number.

    Example: numtok diagnose era5-p1000-parallel era5-p1000-left-to-right
    """
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import run

    print_errors(run(settings, open_store(context)), format)
