"""What ``explain`` prints: how schemes write one number."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numtok.cli.output.printing import Format, Sheet, print_table

if TYPE_CHECKING:
    from numtok.stages.explain import ExplainedNumber

_COLUMNS = ("scheme", "tokens", "channel", "count", "read back", "relative error", "note")


def print_explained(number: str, written: "Sequence[ExplainedNumber]", format: Format) -> None:
    """Print one row per scheme; people see only the columns in which a row has something."""
    from numtok.analysis.profiling.short_values import short_value

    table = format is Format.TABLE
    rows = [
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
    sheet = Sheet(number, _COLUMNS, rows)
    sheet = sheet.without_empty() if table else sheet
    print_table(number, sheet.columns, sheet.rows, format)


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
