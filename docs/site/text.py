"""Markdown and HTML helpers for generated pages."""

import html
import re
from collections.abc import Iterable, Sequence

from numtok.cli.output.printing import markdown

_NUMBER = r"(?:1 - )?[-+]?\d[\d,.]*(?:e[-+]?\d+)?%?"
_SPREAD = rf" ± {_NUMBER}| \[{_NUMBER}, {_NUMBER}\]"
#: A number with an optional spread and an optional second number in brackets, or an empty cell.
_NUMERIC = re.compile(rf"(?:{_NUMBER}(?:{_SPREAD})?(?: \({_NUMBER}\))?)?")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table. Columns of numbers are right-aligned, and numbers never wrap."""
    cells = [[str(cell) for cell in row] for row in rows]
    head, _, *body = markdown(
        columns, [[_unbroken(cell) for cell in row] for row in cells]
    ).splitlines()
    numeric = [all(map(_NUMERIC.fullmatch, column)) for column in zip(*cells, strict=True)]
    line = " | ".join("---:" if right else "---" for right in numeric or [False] * len(columns))
    return "\n".join([head, f"| {line} |", *body])


def _unbroken(cell: str) -> str:
    return cell.replace(" ", "\u00a0") if _NUMERIC.fullmatch(cell) else cell


def chips(tokens: Iterable[str]) -> str:
    """Return tokens as a row of boxes, in HTML that is safe inside a Markdown table."""
    boxes = [f'<span class="token">{_escaped(token)}</span>' for token in tokens]
    return f'<span class="tokens">{"".join(boxes)}</span>'


def _escaped(text: str) -> str:
    """Escape characters that HTML or Markdown would interpret."""
    return re.sub(r"[|\\`*_\[\]{}]", lambda match: f"&#{ord(match[0])};", html.escape(text))


def prose(text: str) -> str:
    """Return a docstring as Markdown: double backticks become single ones."""
    return text.replace("``", "`").strip()


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, on one line."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[a-z0-9)`\]]\.)(?<!et al\.) ", paragraph)[0]
