"""``numtok report``: print a report from the store."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.report import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Print a report.

    It shows metrics with intervals, results by group, baselines and the model's skill relative to
    them, and costs.

    Example: numtok report arithmetic-xval --against xval/table3
    """
    from numtok.cli.output.pages.write import check_page, write_page
    from numtok.cli.output.report import print_report
    from numtok.evaluation.comparison.beside_published import beside_published
    from numtok.evaluation.report_files import read
    from numtok.reports import REPORT

    check_page(settings.html)
    store = open_store(context)
    evaluation = read(store.resolve(settings.ref, {REPORT}))
    against, row, column = settings.against, settings.row, settings.column
    label = evaluation.report.scheme
    table = (
        beside_published(against, [(label, [evaluation])], row=row, column=column)
        if against is not None
        else None
    )
    print_report(evaluation, format, table, all_metrics=settings.all_metrics)
    name = evaluation.ref.partition("@")[0]
    context.obj.next(f"numtok compare {name} OTHER", f"numtok diagnose {name}")
    if settings.html is not None:
        from numtok.cli.output.pages.report import report_page

        write_page(settings.html, report_page(evaluation, store.resolve), context.obj.note)
