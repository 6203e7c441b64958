"""Command results as text, and as HTML in a notebook, formatted as the commands print them."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import groupby
from typing import Any, TypeVar

from numtok.cli.output.printing import Format

Value = TypeVar("Value")
#: Prints on standard output in a format.
Show = Callable[[Format], None]
_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A command result that is not an artifact, such as a profile or a comparison.

    Its text is the output of the command.

    Attributes
    ----------
    result
        The full result, as an object.
    show
        Function that prints the result in a given format.
    text
        Format of ``str(shown)``.
    """

    result: Any
    show: Show
    text: Format = Format.TABLE

    @classmethod
    def of(cls, result: Value, show: Callable[[Value, Format], None]) -> "Shown":
        """Return a result that the function ``show`` prints."""
        return cls(result, partial(show, result))

    def __str__(self) -> str:
        return printed(self.show, self.text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the tables that the command prints, as HTML."""
        return as_html(printed(self.show, Format.MD))


def printed(show: Show, format: Format) -> str:
    """Return the text that ``show`` prints in the given format."""
    with redirect_stdout(io.StringIO()) as out:
        show(format)
    return out.getvalue().rstrip("\n")


def as_html(markdown: str) -> str:
    r"""Convert Markdown tables, and the lines between them, to HTML. All content is escaped.

    >>> as_html("a < b\n| x |\n| --- |\n| 1 \\| 2 |")
    '<p>a &lt; b</p><table><tr><th>x</th></tr><tr><td>1 | 2</td></tr></table>'
    """
    parts = []
    for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("| ")):
        lines = list(group)
        if is_table:
            head, _, *rows = map(_cells, lines)
            parts.append(html_table(head, rows))
        elif escaped := [escape(line) for line in lines if line.strip()]:
            parts.append(f"<p>{'<br>'.join(escaped)}</p>")
    return "".join(parts)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML. All content is escaped."""
    return f"<table>{_row(head, 'th')}{''.join(_row(row, 'td') for row in rows)}</table>"


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BETWEEN_CELLS.split(line)[1:-1]]


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
