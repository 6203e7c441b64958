"""What a command prints of a result, as text and in a notebook."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from numtok.cli.output.printing import Format

#: Prints on standard output in a format.
Show = Callable[[Format], None]
_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A result that is no artifact: a profile, a comparison, how schemes write a number.

    result
        All of it, as an object.
    show
        Prints it as the command does.
    text
        In which format, as text.
    """

    result: Any
    show: Show
    text: Format = Format.TABLE

    def __str__(self) -> str:
        return printed(self.show, self.text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The tables that the command prints."""
        return as_html(printed(self.show, Format.MD))


def printed(show: Show, format: Format) -> str:
    """What is printed in a format."""
    with redirect_stdout(io.StringIO()) as out:
        show(format)
    return out.getvalue().rstrip("\n")


def as_html(markdown: str) -> str:
    r"""Tables of Markdown, and lines between them, as HTML; whatever they hold is escaped.

    >>> as_html("a < b\n| x |\n| --- |\n| 1 \\| 2 |")
    '<p>a &lt; b</p><table><tr><th>x</th></tr><tr><td>1 | 2</td></tr></table>'
    """
    parts = []
    for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("| ")):
        lines = list(group)
        if is_table:
            head, _, *rows = map(_cells, lines)
            parts.append(html_table(head, rows))
        elif told := [escape(line) for line in lines if line.strip()]:
            parts.append(f"<p>{'<br>'.join(told)}</p>")
    return "".join(parts)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as HTML; whatever it holds is escaped."""
    return f"<table>{_row(head, 'th')}{''.join(_row(row, 'td') for row in rows)}</table>"


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BETWEEN_CELLS.split(line)[1:-1]]


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
