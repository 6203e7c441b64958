"""``numtok explain``: show how each scheme writes a number, or which numbers a text contains."""

import sys
from collections.abc import Iterator

import typer

from numtok.cli.output.printing import Format
from numtok.settings.explain import Config

CONTEXT = {"ignore_unknown_options": True}  # so that -60.2 is a number, not an option


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Show how a number is encoded, or how a text is parsed.

    The last columns show the value after decoding. With --text, the numbers are marked in the text,
    and digits that are not part of any number are listed, each with the reason.

    Example: numtok explain -60.2
    """
    from numtok.numerals.policy import NumeralPolicy

    policy = NumeralPolicy.parse(settings.numerals or "default", settings.not_numbers)
    if settings.text is not None:
        from numtok.cli.output.reading import print_readings
        from numtok.numerals.reading import read_text

        print_readings((read_text(text, policy) for text in _texts(settings.text)), format)
        return
    from numtok.cli.output.schemes import print_explained
    from numtok.stages.explain import run

    assert settings.number is not None
    written = run(settings.number, settings.schemes, policy)
    print_explained(settings.number, written, format)
    if format is Format.TABLE:
        context.obj.next("numtok schemes NAME")


def _texts(text: str) -> Iterator[str]:
    """Yield the text, or the lines of standard input for ``-``."""
    if text != "-":
        yield text
        return
    for line in sys.stdin.buffer:
        yield line.decode(errors="replace").rstrip("\r\n")
