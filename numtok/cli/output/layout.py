"""Layout of tables on a terminal.

Numbers, hashes, names and specs are never wrapped.

If a table is too wide, its text columns are wrapped. If that does not suffice, intervals are
printed below their values. If the table is still too wide, its columns are divided into several
tables, one below the other.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from numtok.cli.output.figures import Formatted

GAP = 2  # characters between columns
_UNBROKEN = 15  # characters; shorter text cells stay on one line, such as "12.9 s"
_NARROWEST = 8  # characters; smallest width of a text column
_LABEL = (
    30  # characters of the first column, beyond which it has a line of its own if room is short
)
_MOST_STACKED = 4  # most tables that the columns are divided into
_NUMBER = re.compile(r"[~<>+-]{0,2}[\d,]+")
_UNIT = re.compile(r"^[~<>+-]{0,2}[\d,]*\.?\d*(?:e-?\d+)?")
_INTERVAL = "95% interval"


@dataclass(frozen=True)
class TableColumn:
    """A column of formatted cells, as printed on a terminal.

    Attributes
    ----------
    cells
        Formatted cell of each row, without line feeds.
    numeric
        True if cells are right-aligned. Text and intervals are left-aligned.
    folds
        True if cells may be wrapped between words.
    style
        Style of all cells, such as "dim".
    interval
        True if the cells are the intervals of the column to the left.
    """

    heading: str
    cells: tuple[str, ...]
    numeric: bool = False
    folds: bool = False
    style: str = ""
    interval: bool = False

    @property
    def width(self) -> int:
        """Width of the longest cell, including the heading, in characters."""
        return max(map(cell_len, (self.heading, *self.cells)))


def columns_of(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    texts: Sequence[Sequence[str]],
    words: Sequence[str] | None,
) -> list[TableColumn]:
    """Return the columns of a table. ``rows`` contains its cells, and ``texts`` contains the same
    cells as formatted text.

    ``words`` lists the columns that may be wrapped; None stands for all text columns except the
    first. A column with intervals becomes two columns.
    """
    columns = []
    with_ends = [
        any(isinstance(row[index], Formatted) and row[index].ends for row in texts)  # type: ignore[attr-defined]
        for index in range(len(headings))
    ]
    for index, heading in enumerate(headings):
        cells = [row[index] for row in texts]
        numeric = any(isinstance(cell, (int, float, Formatted)) for cell in cells) or any(
            isinstance(row[index], (int, float)) and not isinstance(row[index], bool)
            for row in rows
        )
        folds = not numeric and (index > 0 if words is None else heading in words)
        values = [cell.value if isinstance(cell, Formatted) else cell for cell in cells]
        columns.append(TableColumn(heading, tuple(values), numeric, folds))
        if with_ends[index]:
            between = [cell.between if isinstance(cell, Formatted) else "" for cell in cells]
            name = _INTERVAL if sum(with_ends) == 1 else "95%"
            columns.append(TableColumn(name, tuple(between), style="dim", interval=True))
    return columns


def aligned(column: TableColumn) -> TableColumn:
    """Return the column with aligned decimal points, if its numbers all have the same unit."""
    if not column.numeric:
        return column
    matches = [_NUMBER.match(cell) for cell in column.cells]
    units = {
        _UNIT.sub("", cell).strip(" *")
        for cell, match in zip(column.cells, matches, strict=True)
        if match
    }
    if len(units) != 1:
        return column
    tails = [
        len(cell) - match.end() if match else len(cell) - 1 if cell == "-" else None
        for cell, match in zip(column.cells, matches, strict=True)
    ]
    longest = max(tail for tail in tails if tail is not None)
    cells = [
        cell if tail is None else cell + " " * (longest - tail)
        for cell, tail in zip(column.cells, tails, strict=True)
    ]
    return replace(column, cells=tuple(cells))


def width_of(columns: Sequence[TableColumn], indent: int = 0) -> int:
    """Return the width, in characters, of a line with these columns and an indent."""
    return indent + sum(column.width for column in columns) + GAP * (len(columns) - 1)


# --- fitting -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableBlock:
    """Columns that are printed side by side.

    Attributes
    ----------
    labels
        Row labels, each printed on a separate line above its row; empty if the first column fits.
    below
        True if intervals are printed below their values.
    widths
        Width of each column in characters, if any column is wrapped.
    note
        Note on columns that were dropped; empty if all fit.
    """

    columns: Sequence[TableColumn]
    labels: Sequence[str] = ()
    below: bool = False
    widths: Sequence[int] = ()
    note: str = ""


def fitted(
    columns: Sequence[TableColumn], limit: int, *, in_lists: bool = False
) -> list[TableBlock]:
    """Divide columns into blocks that fit into ``limit`` characters.

    With ``in_lists``, the columns stay in one block, even if it is too wide; each row is then
    printed on several lines.
    """
    nicely = [aligned(column) for column in columns]
    for candidates in (nicely, list(columns)):
        if width_of(candidates) <= limit:
            return [TableBlock(candidates)]
    if widths := _folded_widths(columns, limit):
        return [TableBlock(columns, widths=widths)]
    below = any(column.interval for column in columns)
    for candidates in (nicely, list(columns)):
        if below and width_below(candidates) <= limit:
            return [TableBlock(candidates, below=True)]
    if in_lists:
        return [TableBlock(columns, widths=[column.width for column in columns])]
    first, *rest = columns
    labels: Sequence[str] = ()
    room = limit - first.width - GAP
    if first.width > _LABEL or room < max((column.width for column in rest), default=0):
        labels, room = first.cells, limit
    groups: list[list[TableColumn]] = [[]]
    for column in rest:
        used = sum(kept.width + GAP for kept in groups[-1])
        # An interval stays with its value.
        needed = column.width
        following = rest.index(column) + 1
        if following < len(rest) and rest[following].interval:
            needed += GAP + rest[following].width
        if groups[-1] and used + needed > room and not column.interval:
            groups.append([])
        groups[-1].append(column)
    tables = [
        TableBlock(group if labels else [first, *group], labels=labels)
        for group in groups[:_MOST_STACKED]
    ]
    if dropped := [
        column.heading
        for group in groups[_MOST_STACKED:]
        for column in group
        if not column.interval
    ]:
        note = (
            f"{len(dropped)} more columns do not fit: {', '.join(dropped)}. "
            "Use a wider terminal or --format csv."
        )
        tables[-1] = replace(tables[-1], note=note)
    return tables


def width_below(columns: Sequence[TableColumn]) -> int:
    """Return the width, in characters, of a line in which each interval is printed below its
    value."""
    widths: list[int] = []
    for column in columns:
        if column.interval:
            longest = max(map(cell_len, column.cells))
            widths[-1] = max(widths[-1], longest)
        else:
            widths.append(column.width)
    return sum(widths) + GAP * (len(widths) - 1)


def _folded_widths(columns: Sequence[TableColumn], limit: int) -> list[int]:
    """Return the widths with text columns shrunk; empty if their longest words do not fit."""
    widths = [column.width for column in columns]
    least = [
        max(_longest_word(cell) for cell in (column.heading, *column.cells))
        if column.folds
        else width
        for column, width in zip(columns, widths, strict=True)
    ]
    least = [min(width, max(low, _NARROWEST)) for low, width in zip(least, widths, strict=True)]
    room = limit - GAP * (len(columns) - 1)
    if sum(least) > room or not any(column.folds for column in columns):
        return []
    while sum(least) < room:
        lacking = [width - low for width, low in zip(widths, least, strict=True)]
        if not max(lacking):
            break
        least[lacking.index(max(lacking))] += 1
    return least


def _longest_word(cell: str) -> int:
    parts = [cell] if cell_len(cell) <= _UNBROKEN else cell.split(" ")
    return max(map(cell_len, parts))


# --- printing ----------------------------------------------------------------------------------


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
        Rows whose first cell is a heading for the rows below.
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
        if (
            in_lists
            and table.widths
            and width_of(table.columns) > limit
            and not any(
                column.folds and width < column.width
                for column, width in zip(table.columns, table.widths, strict=True)
            )
        ):
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
