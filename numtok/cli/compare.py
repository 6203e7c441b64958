"""``numtok compare``."""

from typing import Annotated

import typer

from numtok.cli._shared import AgainstOption, ColumnOption, FormatOption, JsonOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORT...", help="REFs of reports on one test set.")
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="r2, relative-error-over,limit=0.1 ...; repeatable."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="GATE", help='"r2>=0.99": exit 1 if a report fails; repeatable.'),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help='"loss<=0.5": tokens until the validation split had that; repeatable.',
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="REPORT", help="Differences are from this one, or its label. Default: the best."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="GROUP", help="A table for each value of a group.")
    ] = None,
    against: AgainstOption = None,
    column: ColumnOption = None,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Compare reports, paired sample by sample; those that differ in the seed count as one.

    Example: numtok compare arithmetic-p1000 arithmetic-xval --require "r2>=0.9"
    """
    from numtok.cli.output.comparison import print_comparison
    from numtok.errors import NegativeVerdict
    from numtok.stages.compare import Config, run

    config = Config(
        reports=tuple(reports),
        metrics=tuple(metric or ()),
        require=tuple(require or ()),
        by=by,
        against=against,
        column=column,
        until=tuple(until or ()),
        reference=reference,
    )
    comparison = run(config, open_store(context))
    print_comparison(comparison, Format.JSON if json else format)
    failed = [one for one in comparison.requirements if not one.met]
    if failed:
        raise NegativeVerdict("not met: " + "; ".join(one.message for one in failed))
