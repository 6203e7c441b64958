"""What ``explain`` prints: how schemes write one number."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numtok.cli.output.printing import Format, print_table

if TYPE_CHECKING:
    from numtok.stages.explain import ExplainedNumber

_COLUMNS = ("scheme", "tokens", "channel", "count", "read back", "relative error", "note")


def print_explained(number: str, written: "Sequence[ExplainedNumber]", format: Format) -> None:
    """Print a row a scheme; of the table for people, the columns in which any row has something."""
    from numtok.analysis.profiling.short_values import short_value

    table = format is Format.TABLE
    columns: tuple[str, ...] = _COLUMNS
    rows: list[tuple[object, ...]] = [
        (
            item.scheme,
            _joined(item.tokens) if table else " ".join(item.tokens),
            _channel(item) if table else item.channel,
            len(item.tokens),
            _short(item.decoded) if table and item.error and not item.exact else item.decoded,
            short_value(item.error) if table and item.error else item.error,
            item.note,
        )
        for item in written
    ]
    if table:  # what no row has would only take room
        kept = [k for k in range(len(columns)) if any(row[k] not in (None, "") for row in rows)]
        columns = tuple(columns[k] for k in kept)
        rows = [tuple(row[k] for k in kept) for row in rows]
    print_table(number, columns, rows, format)


def _channel(item: "ExplainedNumber") -> str | None:
    """All the digits that are there."""
    if item.channel is None:
        return None
    return repr(item.channel) if item.exact else str(np.float32(item.channel))


def _joined(tokens: tuple[str, ...]) -> str:
    """The tokens, or one and how often it stands there: a special number is one token repeated."""
    if len(tokens) > 1 and len(set(tokens)) == 1:
        return f"{tokens[0]} (x{len(tokens)})"
    return " ".join(tokens)


def _short(literal: str) -> str:
    """What was rounded anyway, without more digits than tell which float32 it is."""
    return literal if len(literal) <= 12 else f"{float(literal):.9g}"
