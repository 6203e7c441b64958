"""``numtok explain``: how each scheme writes one number, and what it reads back."""

import typer

from numtok.cli.output.printing import Format, print_table
from numtok.settings.explain import Config

CONTEXT = {"ignore_unknown_options": True}  # so that -60.2 is a number and no option


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Show how each scheme writes a number, and what is read back.

    Example: numtok explain -60.2
    """
    from numtok.analysis.profiling.short_values import short_value
    from numtok.numerals.policy import NumeralPolicy
    from numtok.stages.explain import run

    policy = NumeralPolicy.parse(settings.numerals or "default")
    written = run(settings.number, settings.schemes, policy)
    table = format is Format.TABLE
    rows: list[tuple[object, ...]] = [
        (
            item.scheme,
            _joined(item.tokens) if table else " ".join(item.tokens),
            item.channel,
            len(item.tokens),
            _short(item.decoded) if table and item.error else item.decoded,
            short_value(item.error) if table and item.error else item.error,
            item.note,
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
    if table:  # what no row has would only take room
        kept = [k for k in range(len(columns)) if any(row[k] not in (None, "") for row in rows)]
        columns = tuple(columns[k] for k in kept)
        rows = [tuple(row[k] for k in kept) for row in rows]
    print_table(settings.number, columns, rows, format)


def _joined(tokens: tuple[str, ...]) -> str:
    """The tokens, or one and how often it stands there: a special number is one token repeated."""
    if len(tokens) > 1 and len(set(tokens)) == 1:
        return f"{tokens[0]} (x{len(tokens)})"
    return " ".join(tokens)


def _short(literal: str) -> str:
    """What was rounded anyway, without more digits than tell which float32 it is."""
    return literal if len(literal) <= 12 else f"{float(literal):.9g}"
