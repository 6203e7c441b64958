"""How tables, JSON and references are printed."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from numtok.store.artifact import Artifact

SCHEMA = 1  # of what is printed as JSON
#: Of reports, comparisons, sweeps, errors and profiles, some fields of which had other names in 1.
RENAMED_SCHEMA = 2
GAP = 3  # characters between the columns of a table
_UNFOLDED = 10  # characters of a cell that stays on a line, as a figure with its unit has to
_UNFOLDED_LINE = 1 << 16  # characters, more than any table has
_NARROW = 7  # characters in which most figures stand


class Format(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


class Size(int):
    """A number of bytes; a number in the formats for programs, with a unit in the others."""

    def __str__(self) -> str:
        value, unit = float(self), "B"
        for larger in ("kB", "MB", "GB", "TB"):
            if value >= 999.5:
                value, unit = value / 1000, larger
        return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"


def one_line(text: str) -> str:
    r"""The text with whatever would move the cursor or cannot be encoded written as an escape.

    >>> one_line("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def counted(number: int, what: str) -> str:
    """``(1, "file") -> "1 file"``, ``(1200, "file") -> "1,200 files"``"""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def print_json(value: dict[str, Any], to: TextIO | None = None, schema: int = SCHEMA) -> None:
    """One JSON object, with the schema version that programs can rely on."""
    print(json.dumps({"schema": schema} | value), file=to or sys.stdout)


def print_data(
    format: Format,
    value: object,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    to: TextIO | None = None,
    schema: int = RENAMED_SCHEMA,
) -> bool:
    """Print for programs, in their formats: as JSON all of a ``value``, of structs and the like, as
    CSV the rows, one a figure. False for a format for people, in which nothing is printed."""
    if format is Format.JSON:
        import msgspec

        print_json(msgspec.to_builtins(value), to, schema)
    elif format is Format.CSV:
        print_table("", columns, list(rows), format, to)
    return format in (Format.JSON, Format.CSV)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    format: Format = Format.TABLE,
    to: TextIO | None = None,
) -> None:
    """Print rows of str, int, float, Size or None; numbers to the right, stdout by default.

    The table for people fits the terminal, or 80 columns, and folds rather than
    cuts. JSON is ``{"schema": 1, "rows": [{column: value}]}``.
    """
    to = to or sys.stdout
    if format is Format.JSON:
        print_json({"rows": [dict(zip(columns, row, strict=True)) for row in rows]}, to)
    elif format is Format.CSV:
        writer = csv.writer(to, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(cell) for cell in row] for row in rows)
    elif format is Format.MD:
        print(markdown(columns, [[_human(cell) for cell in row] for row in rows]), file=to)
    else:
        _print_rich_table(title, columns, rows, to)


def print_dry_run(ref: str, rows: Sequence[tuple[str, object]], format: Format) -> None:
    """Print what would be made."""
    print_table("dry run", ("what", "value"), [("would make", ref), *rows], format)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; ``|`` in a cell is escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def print_made_json(artifact: "Artifact", made: bool, **more: object) -> None:
    """Print what a command made, or found, as JSON: its REF, its counts, and ``more``."""
    counts = artifact.manifest.counts
    print_json({"ref": artifact.ref, "made": made, "counts": counts} | more)


def print_made(
    title: str,
    ref: str,
    rows: Sequence[tuple[str, object]],
    format: Format,
    quiet: bool,
    notes: Sequence[str] = (),
) -> None:
    """Print what a command made: its REF on stdout, table and notes for people on stderr.

    With a format for programs, the table with the REF in it on stdout instead.
    """
    columns = ("what", "value")
    if format is not Format.TABLE:
        print_table(title, columns, [("ref", ref), *rows], format)
        return
    if not quiet:
        print_table(title, columns, rows, to=sys.stderr)
        print(file=sys.stderr)
        for note in notes:
            print(f"numtok: {one_line(note)}", file=sys.stderr)
    print(ref)


def rows_by_split(counts: Mapping[str, int]) -> list[tuple[str, object]]:
    """Of the counts of an artifact, the rows of each split, as lines below those of all.

    >>> rows_by_split({"rows": 3, "rows_test": 1, "rows_train": 2})
    [('  test', 1), ('  train', 2)]
    """
    return [
        (f"  {key.removeprefix('rows_')}", count)
        for key, count in sorted(counts.items())
        if key.startswith("rows_")
    ]


def _print_rich_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], to: TextIO
) -> None:
    print(one_line(title), file=to)
    if not rows:
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    console = Console(file=to, width=table_width(to))
    told = [[_human(cell) for cell in row] for row in rows]
    widths = _widths([columns, *told], console.width)
    for index, (column, width) in enumerate(zip(columns, widths, strict=True)):
        numbers = any(isinstance(row[index], (int, float)) for row in rows)
        justify: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(Text(column), justify=justify, overflow="fold", width=width)
    for cells in told:
        table.add_row(*map(Text, cells))
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        print(line.rstrip(), file=to)


def table_width(to: TextIO) -> int:
    """Characters per line of a table: of the terminal, or ``COLUMNS``. Piped output is not folded,
    so that names and REFs stay whole."""
    from rich.console import Console

    console = Console(file=to)
    return console.width if console.is_terminal or "COLUMNS" in os.environ else _UNFOLDED_LINE


def _widths(rows: Sequence[Sequence[str]], limit: int) -> list[int | None]:
    """Characters of each column of a table that has to fold its cells: between words, short cells
    only where there is no room, and in the longest words where even these are too wide, those of
    the first column last. None for each where nothing has to fold.

    >>> _widths([["scheme", "source"], ["p10", "xVal, Table 1"]], 20)
    [6, 11]
    >>> _widths([["data=sums, scheme=p10", "12.9 s"]], 20)
    [11, 6]
    >>> _widths([["numerologic", "1.2345678901234568e+17", "1.2345678901234568e+17"]], 40)
    [11, 11, 12]
    """
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    whole = [max(map(cell_len, column)) for column in columns]
    room = limit - GAP * (len(columns) - 1)
    if sum(whole) <= room or room < len(columns):
        return [None] * len(columns)
    for unfolded in (_UNFOLDED, 0):
        widths = [max(_longest_part(cell, unfolded) for cell in column) for column in columns]
        if sum(widths) <= room:
            break
    # The first column names the row, and keeps its words where that leaves room for the others.
    begin = int(widths[0] <= min(room // 3, room - _NARROW * (len(columns) - 1)))
    while sum(widths) > room:
        widths[widths.index(max(widths[begin:]), begin)] -= 1
    while sum(widths) < room:  # to the one that lacks most
        lacking = [one - other for one, other in zip(whole, widths, strict=True)]
        widths[lacking.index(max(lacking))] += 1
    return [*widths]


def _longest_part(cell: str, unfolded: int) -> int:
    """Characters of the longest word of a cell, or of all of it if it has at most so many."""
    from rich.cells import cell_len

    parts = [cell] if cell_len(cell) <= unfolded else cell.split(" ")
    return max(map(cell_len, parts))


def _plain(cell: object) -> object:
    if isinstance(cell, Size):
        return int(cell)
    return one_line(cell) if isinstance(cell, str) else cell


def _human(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int) and not isinstance(cell, (bool, Size)):
        return f"{cell:,}"
    if isinstance(cell, float):  # 1e-320 has no more digits than that
        return min(f"{cell:.6g}", repr(cell), key=len)
    return one_line(str(cell))
