"""What a command prints of a result, as text and in a notebook."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from html import escape
from typing import Any

_STYLE = "line-height: 1.25; overflow-x: auto; white-space: pre"


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A result that is no artifact: a profile, a comparison, how schemes write a number.

    result
        All of it, as an object.
    show
        Prints it as the command does.
    """

    result: Any
    show: Callable[[], None]

    def __str__(self) -> str:
        return printed(self.show)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What the command prints, escaped."""
        return as_html(printed(self.show))


def printed(show: Callable[[], None]) -> str:
    """What a function prints on standard output."""
    with redirect_stdout(io.StringIO()) as out:
        show()
    return out.getvalue().rstrip("\n")


def as_html(text: str) -> str:
    """Text as it stands, tables in columns, for a notebook.

    >>> as_html("a < b").endswith(">a &lt; b</pre>")
    True
    """
    return f'<pre style="{_STYLE}">{escape(text)}</pre>'
