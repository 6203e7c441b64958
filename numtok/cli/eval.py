"""``numtok eval``: evaluate a model on a split and report on its predictions."""

import typer

from numtok.cli._options import options_check
from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.eval import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Evaluate a model on a split and write a report.

    Predicts the numbers, labels or answers of each row, and prints the report and its REF.

    Example: numtok eval era5-xval-nano era5-xval --split test
    """
    from numtok.cli.output.progress import Count
    from numtok.cli.output.report import print_report
    from numtok.evaluation.comparison.beside_published import beside_published
    from numtok.evaluation.published import published
    from numtok.evaluation.report_files import read
    from numtok.stages.eval import run

    against, column = settings.against, settings.column
    if against is not None:  # before the evaluation, so that a typo costs nothing
        table = published(against)
        if column is not None:
            table.column(column)
    with Count(context.obj.quiet) as progress:
        check = options_check(context, settings)
        artifact = run(settings, open_store(context), progress, check).artifact
    evaluation = read(artifact)
    published_table = (
        beside_published(against, [(evaluation.report.scheme, [evaluation])], column=column)
        if against
        else None
    )
    print_report(
        evaluation,
        format,
        published_table,
        made=artifact.ref,
        quiet=context.obj.quiet,
        all_metrics=settings.all_metrics,
    )
