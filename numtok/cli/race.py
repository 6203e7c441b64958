"""``numtok race``: which encoding predicts the numbers of some data best, in the time there is."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.race import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Find out which encoding predicts the numbers of your data best, and print its model's REF.

    What suits the data races by successive halving on the validation split; the last ones are
    trained with several seeds and compared there again. The test split is read once, to report
    on them. An interrupted race resumes.

    Example: numtok race rooms.jsonl --minutes 10
    """
    from numtok.cli.output.pages.write import check_page, write_page
    from numtok.cli.output.race import Watching, print_race
    from numtok.sweeps.race.race import run

    check_page(settings.html)
    store = open_store(context)
    with Watching(context.obj.quiet, settings.seconds) as watching:
        result = run(settings, store, watching, watching.introduce)
    print_race(result, format, context.obj.quiet)
    if settings.html is not None:
        from numtok.cli.output.pages.race import race_page

        write_page(settings.html, race_page(result, store.resolve), context.obj.note)
