"""Prints how schemes write a number."""

from collections.abc import Sequence

from numtok.cli.output.printing import Format, print_parts, print_table
from numtok.stages.explain import ExplainedNumber

_COLUMNS = ("scheme", "tokens", "channel", "count", "read back", "relative error", "note")


def print_explained(number: str, written: Sequence[ExplainedNumber], format: Format) -> None:
    """Print how schemes write a number: one table grouped by kind of scheme, or one row per scheme
    in CSV, JSON and Markdown."""
    if format is Format.TABLE:
        from numtok.cli.output.schemes import explain_parts

        print_parts(explain_parts(number, written))
        return
    rows = [
        (
            item.scheme,
            " ".join(item.tokens),
            item.channel,
            len(item.tokens),
            item.decoded,
            item.error,
            item.note,
        )
        for item in written
    ]
    print_table(number, _COLUMNS, rows, format)
