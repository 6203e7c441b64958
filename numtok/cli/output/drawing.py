"""Draws tables on a terminal, as laid out by :mod:`numtok.cli.output.layout`."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from numtok.cli.output.layout import GAP, TableBlock, TableColumn, fitted, width_of


def print_tables(
    columns: Sequence[TableColumn],
    limit: int,
    to: TextIO,
    *,
    best: frozenset[tuple[int, int]],
    headings: frozenset[int],
    in_lists: bool,
) -> list[str]:
    """Print a table in at most ``limit`` characters per line, and return notes on dropped columns.

    best
        (row, index in ``columns``) of each cell to print in bold.
    headings
        Indices of rows whose first cell is a heading for the rows below.
    in_lists
        True to print each row on several lines if the table is too wide. Otherwise, a table that is
        too wide is divided into several tables.
    """
    console = Console(file=to, highlight=False, markup=False, emoji=False, width=1 << 16)
    marks = {(row, columns[index].heading): "bold" for row, index in best}
    # Headings of rows may be wider than the column.
    first = columns[0]
    spanning = {row: first.cells[row] for row in headings}
    if spanning:
        cells = tuple("" if row in spanning else cell for row, cell in enumerate(first.cells))
        columns = [replace(first, cells=cells), *columns[1:]]
    notes = []
    for index, table in enumerate(fitted(columns, limit, in_lists=in_lists)):
        if index:
            console.print()
        if table.stacked:
            _print_stacked(table.columns, limit, console, spanning)
        else:
            for line in _lines(table, marks, spanning, _rule(to)):
                line.rstrip()
                console.print(line, soft_wrap=True)
        if table.note:
            notes.append(table.note)
    return notes


def _rule(to: IO[str]) -> str:
    try:
        "─".encode(getattr(to, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return "-"
    return "─"


def _lines(
    table: TableBlock, marks: dict[tuple[int, str], str], spanning: dict[int, str], rule: str
) -> Iterator[Text]:
    """Yield the lines of one table, as styled text."""
    shown: list[tuple[TableColumn, TableColumn | None]] = []  # with the interval below
    for column in table.columns:
        if column.interval and table.below:
            shown[-1] = (shown[-1][0], column)
        else:
            shown.append((column, None))
    widths = list(table.widths) or [
        max(column.width, *map(cell_len, below.cells)) if below and below.cells else column.width
        for column, below in shown
    ]
    indent = 2 * bool(table.labels)
    if any(column.heading for column, _ in shown):
        headings = [
            _padded(Text(column.heading, "bold"), width, column.numeric)
            for width, (column, _) in zip(widths, shown, strict=True)
        ]
        yield _line(headings, indent)
        total = indent + sum(widths) + GAP * (len(widths) - 1)
        yield Text(rule * max(total, *map(cell_len, table.labels or ("",))))
    for row in range(len(table.columns[0].cells)):
        if row in spanning:
            yield Text(spanning[row])
            continue
        if table.labels:
            yield Text(table.labels[row])
        blocks = []
        for (column, below), width in zip(shown, widths, strict=True):
            style = marks.get((row, column.heading), column.style)
            lines = [Text(line, style) for line in _folded(column.cells[row], width, column.folds)]
            if below is not None and below.cells[row]:
                lines.append(Text(below.cells[row], "dim"))
            blocks.append([_padded(line, width, column.numeric) for line in lines])
        for depth in range(max(map(len, blocks))):
            yield _line(
                [
                    block[depth] if depth < len(block) else Text(" " * width)
                    for block, width in zip(blocks, widths, strict=True)
                ],
                indent,
            )


def _folded(cell: str, width: int, folds: bool) -> list[str]:
    if not folds or cell_len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]


def _padded(text: Text, width: int, right: bool) -> Text:
    padding = " " * max(0, width - text.cell_len)
    return Text.assemble(padding, text) if right else Text.assemble(text, padding)


def _line(cells: Sequence[Text], indent: int) -> Text:
    return Text.assemble(" " * indent, Text(" " * GAP).join(cells))


def _print_stacked(
    columns: Sequence[TableColumn], limit: int, console: Console, spanning: dict[int, str]
) -> None:
    """Print each row on several lines, each with as many columns as fit."""
    groups: list[list[int]] = [[]]
    for index, column in enumerate(columns):
        indent = 2 * (len(groups) > 1)
        used = indent + sum(columns[kept].width + GAP for kept in groups[-1])
        if groups[-1] and used + column.width > limit:
            groups.append([])
        groups[-1].append(index)
    rows = [[column.cells[row] for column in columns] for row in range(len(columns[0].cells))]
    for row, cells in enumerate([[column.heading for column in columns], *rows], -1):
        if row in spanning:
            console.print(Text(spanning[row]), soft_wrap=True)
            continue
        style = "bold" if row < 0 else ""
        for number, group in enumerate(groups):
            texts = [
                _padded(Text(cells[index], style), columns[index].width, columns[index].numeric)
                for index in group
            ]
            line = _line(texts, 2 * bool(number))
            line.rstrip()
            if line.plain.strip():
                console.print(line, soft_wrap=True)
        if row < 0:
            console.print(Text(_rule(console.file) * min(limit, width_of(columns))))
