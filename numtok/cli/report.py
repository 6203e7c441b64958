"""``numtok report``."""

from typing import Annotated

import typer

from numtok.cli._shared import (
    AgainstOption,
    ColumnOption,
    FormatOption,
    JsonOption,
    RefArgument,
    open_store,
)
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    ref: RefArgument,
    against: AgainstOption = None,
    row: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its row. Default: the scheme.")
    ] = None,
    column: ColumnOption = None,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Print a report again: figures with intervals, groups, baselines and skill, costs.

    Example: numtok report arithmetic-xval --against xval/table3
    """
    from numtok.cli.output.report import print_report
    from numtok.errors import UsageError
    from numtok.evaluation.comparison.beside_published import beside_published
    from numtok.evaluation.report_files import read
    from numtok.reports import REPORT

    if against is None and (row or column):
        raise UsageError(
            "--row and --column choose from a published table; name the table with --against"
        )
    evaluation = read(open_store(context).resolve(ref, {REPORT}))
    label = evaluation.report.scheme
    table = (
        beside_published(against, [(label, [evaluation])], row=row, column=column)
        if against is not None
        else None
    )
    print_report(evaluation, Format.JSON if json else format, table)
