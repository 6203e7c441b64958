"""``numtok explain``."""

from typing import Annotated

import typer

from numtok.cli._shared import Format, FormatOption, JsonOption, print_table

CONTEXT = {"ignore_unknown_options": True}  # so that -60.2 is a number and no option


def command(
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="As written: -60.2, 6.02e23.")],
    scheme: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Only these; can be given again.")
    ] = None,
    numerals: Annotated[
        str, typer.Option(metavar="SPEC", help="default[,thousands=yes][,percent=yes], or xval.")
    ] = "default",
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Show how each scheme writes a number, and what is read back.

    Example: numtok explain -60.2
    """
    from numtok.numerals.policy import NumeralPolicy
    from numtok.stages.explain import run

    written = run(number, tuple(scheme or ()), NumeralPolicy.parse(numerals))
    rows: list[tuple[object, ...]] = [
        (
            item.scheme,
            " ".join(item.tokens),
            item.channel,
            len(item.tokens),
            item.decoded,
            item.error,
            item.outcome,
        )
        for item in written
    ]
    columns: tuple[str, ...] = (
        "scheme",
        "tokens",
        "channel",
        "count",
        "read back",
        "relative error",
        "note",
    )
    chosen = Format.JSON if json else format
    if chosen is Format.TABLE:  # what no row has would only take room
        kept = [k for k in range(len(columns)) if any(row[k] not in (None, "") for row in rows)]
        columns = tuple(columns[k] for k in kept)
        rows = [tuple(row[k] for k in kept) for row in rows]
    print_table(number, columns, rows, chosen)
