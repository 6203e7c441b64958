"""``numtok explain``: show how each scheme writes a number and what it reads back."""

import typer

from numtok.cli.output.printing import Format
from numtok.settings.explain import Config

CONTEXT = {"ignore_unknown_options": True}  # so that -60.2 is a number, not an option


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Show how each scheme writes a number.

    The last columns show the value that is read back.

    Example: numtok explain -60.2
    """
    from numtok.cli.output.explain import print_explained
    from numtok.numerals.policy import NumeralPolicy
    from numtok.stages.explain import run

    policy = NumeralPolicy.parse(settings.numerals or "default")
    written = run(settings.number, settings.schemes, policy)
    print_explained(settings.number, written, format)
    if format is Format.TABLE:
        context.obj.next("numtok schemes NAME")
