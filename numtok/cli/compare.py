"""``numtok compare``: compare reports on one test set, paired row by row."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.compare import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Compare reports on the same test set, row by row.

    Reports that differ only in the seed count as runs of one experiment. With --require, exits with
    code 1 if a report misses a threshold.

    Example: numtok compare arithmetic-p1000 arithmetic-xval --require "r2>=0.9"
    """
    from numtok.cli.output.comparison import print_comparison
    from numtok.cli.output.pages.write import check_page, write_page
    from numtok.evaluation.comparison.requirements import check_met
    from numtok.stages.compare import run

    check_page(settings.html)
    store = open_store(context)
    comparison = run(settings, store)
    print_comparison(comparison, format)
    if settings.html is not None:
        from numtok.cli.output.pages.comparison import compare_page

        write_page(settings.html, compare_page(comparison, store.resolve), context.obj.note)
    check_met(comparison.requirements)
    if format is Format.TABLE:
        context.obj.next(f"numtok diagnose {settings.reports[0]}")
