"""``numtok race``: find the best encoding for the numbers in a data set."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.race import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Find the best encoding for your data.

    Encodings that suit the data compete by successive halving on the validation split. Finalists
    are trained with several seeds and compared again. The test split is used once, for the final
    report. Prints the REF of the best model. To resume an interrupted race, run the command again.

    TabICL is one of the baselines on records if it is installed (pip install tabicl skrub) and its
    weights are on this machine (hf download jingang/TabICL, or NUMTOK_TABICL=FILE).

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
