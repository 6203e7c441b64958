"""``numtok fidelity``: count which printed results are reproduced."""

from pathlib import Path

import typer

from numtok.cli.output.printing import Format
from numtok.settings.fidelity import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Count which results of the papers are reproduced.

    Each pair of values that a table prints is an ordering. It is reproduced or contradicted if the
    95% interval of the measured difference excludes 0. With --format md, prints a page that also
    lists each contradiction and each statement of the papers.

    Example: numtok fidelity --format md > fidelity.md
    """
    from numtok.cli.output.fidelity import print_fidelity
    from numtok.evaluation.fidelity.counts import read_fidelity

    print_fidelity(read_fidelity(Path(settings.folder)), format)
