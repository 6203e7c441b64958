"""``numtok profile``: describe the numbers in data before training."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.setting_words import command_line
from numtok.settings.profile import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Describe the numbers in your data.

    Also shows how many tokens each scheme needs for them and how much precision it loses.

    Example: numtok profile data.jsonl
    """
    from numtok.cli.output.pages.write import check_page, write_page
    from numtok.cli.output.profile import print_profile
    from numtok.cli.output.progress import Bar
    from numtok.stages.profile import run

    check_page(settings.html)
    pictures = None
    if settings.html is not None:
        from numtok.analysis.panels.fields import FieldPictures

        pictures = FieldPictures()
    with Bar(context.obj.quiet) as progress:
        profile = run(settings, open_store(context), progress, pictures)
    print_profile(profile, command_line(settings), format)
    if settings.html is not None and pictures is not None:
        from numtok.cli.output.pages.profile import profile_page

        write_page(settings.html, profile_page(profile, pictures.found), context.obj.note)
