"""Layout of tables on a terminal: which columns are shown, and how wide they are.

Numbers, hashes, names and specs are never wrapped.

If a table is too wide, its text columns are wrapped. If that does not suffice, intervals are
printed below their values. If the table is still too wide, its columns are divided into several
tables, one below the other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from numtok.cli.output.figures import Formatted
from numtok.names import counted

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
    """Return the column with its decimal points aligned if all numbers have the same unit, and
    unchanged otherwise."""
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


def width_of(columns: Sequence[TableColumn], *, below: bool = False) -> int:
    """Return the width, in characters, of a line with these columns. With ``below``, each interval
    is printed below its value."""
    widths: list[int] = []
    for column in columns:
        if below and column.interval:
            widths[-1] = max(widths[-1], *map(cell_len, column.cells))
        else:
            widths.append(column.width)
    return sum(widths) + GAP * (len(widths) - 1)


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
    stacked
        True if each row is printed on several lines, because the columns do not fit.
    note
        Note on columns that were dropped; empty if all fit.
    """

    columns: Sequence[TableColumn]
    labels: Sequence[str] = ()
    below: bool = False
    widths: Sequence[int] = ()
    stacked: bool = False
    note: str = ""


def fitted(
    columns: Sequence[TableColumn], limit: int, *, in_lists: bool = False
) -> list[TableBlock]:
    """Divide columns into blocks that fit into ``limit`` characters.

    With ``in_lists``, the columns stay in one block, even if it is too wide.
    """
    nicely = [aligned(column) for column in columns]
    for candidates in (nicely, list(columns)):
        if width_of(candidates) <= limit:
            return [TableBlock(candidates)]
    if widths := _folded_widths(columns, limit):
        return [TableBlock(columns, widths=widths)]
    below = any(column.interval for column in columns)
    for candidates in (nicely, list(columns)):
        if below and width_of(candidates, below=True) <= limit:
            return [TableBlock(candidates, below=True)]
    if in_lists:
        return [TableBlock(columns, stacked=True)]
    first, *rest = columns
    labels: Sequence[str] = ()
    room = limit - first.width - GAP
    if first.width > _LABEL or room < max((column.width for column in rest), default=0):
        labels, room = first.cells, limit
    groups = _grouped(rest, room)
    tables = [
        TableBlock(group if labels else [first, *group], labels=labels)
        for group in groups[:_MOST_STACKED]
    ]
    dropped = [
        column.heading
        for group in groups[_MOST_STACKED:]
        for column in group
        if not column.interval
    ]
    if dropped:
        note = (
            f"{counted(len(dropped), 'column')} left out for lack of room: {', '.join(dropped)}. "
            "Use a wider terminal or --format csv."
        )
        tables[-1] = replace(tables[-1], note=note)
    return tables


def _grouped(columns: Sequence[TableColumn], room: int) -> list[list[TableColumn]]:
    """Divide columns into groups that fit into ``room`` characters, if possible."""
    groups: list[list[TableColumn]] = [[]]
    for column, following in zip(columns, [*columns[1:], None], strict=True):
        used = sum(kept.width + GAP for kept in groups[-1])
        needed = column.width
        if following is not None and following.interval:  # an interval stays with its value
            needed += GAP + following.width
        if groups[-1] and used + needed > room and not column.interval:
            groups.append([])
        groups[-1].append(column)
    return groups


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
