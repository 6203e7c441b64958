"""Prints results: tables for people, JSON and CSV for programs, REFs for both."""

import csv
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

from numtok.cli.output.figures import Formatted, Measured, figure, number
from numtok.cli.output.layout import TableColumn, columns_of, print_tables, width_below, width_of

if TYPE_CHECKING:
    from numtok.store.artifact import Artifact

SCHEMA = 1  # of what is printed as JSON
_UNFOLDED_LINE = 1 << 16  # characters, more than any table has


class Format(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


@dataclass(frozen=True)
class Sheet:
    """A table. Terminal, Markdown, CSV, JSON and pages of HTML all print this.

    rows
        Cells are text, numbers, values with an interval, or None; people see them formatted.
    words
        Columns of sentences, which are folded if a table is too wide; None for all columns of text
        but the first. No other cell is ever folded.
    in_lists
        If a table is still too wide, each row takes several lines. Without it, the columns
        are divided into several tables.
    picks
        On a page, the key of each row by which charts can choose it; rows without one come last.
    better
        For columns in which one direction is better: "higher" or "lower". The best value of the
        rows that can be picked is bold.
    note
        Explanation, printed below the table.

    A row in which only the first cell has text is a heading for the rows below it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    _: KW_ONLY
    words: Sequence[str] | None = ()
    in_lists: bool = False
    picks: Sequence[str] = ()
    better: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def width(self) -> int:
        """Characters of a line if nothing is folded."""
        return width_of(self.shown())

    @property
    def narrowest(self) -> int:
        """Characters of a line with each interval below its value."""
        return width_below(self.shown())

    def shown(self) -> list[TableColumn]:
        """Return the columns as a terminal shows them, with intervals apart."""
        texts = [[human(cell) for cell in row] for row in self.rows]
        return columns_of(self.columns, self.rows, texts, self.words)

    def best(self) -> frozenset[tuple[int, int]]:
        """Return the (row, column) of each best value."""
        cells = set()
        for column, name in enumerate(self.columns):
            direction = self.better.get(name, "neither")
            keys = {
                row: key
                for row, cell in enumerate(self.rows[: len(self.picks)])
                if (key := _key(cell[column])) is not None
            }
            if direction != "neither" and len(set(keys.values())) > 1:
                most = (max if direction == "higher" else min)(keys.values())
                cells |= {(row, column) for row, key in keys.items() if key == most}
        return frozenset(cells)

    def of_columns(self, kept: Sequence[int]) -> "Sheet":
        """Return the sheet with only some columns."""
        columns = [self.columns[column] for column in kept]
        rows = [[row[column] for column in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows)

    def without_empty(self) -> "Sheet":
        """Leave out columns in which no row has anything."""
        every = range(len(self.columns))
        return self.of_columns(
            [column for column in every if any(row[column] not in (None, "") for row in self.rows)]
        )


class Verbatim(list[str]):
    """Lines that are not folded, so that they can be copied."""


#: A part of a result for people: a table, or sentences, each on a line of its own.
Part = Sheet | Sequence[str]


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


def print_json(value: Mapping[str, Any], to: TextIO | None = None) -> None:
    """Print one JSON object, with the schema version that programs can rely on."""
    print(json.dumps({"schema": SCHEMA} | dict(value)), file=to or sys.stdout)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    format: Format = Format.TABLE,
    to: TextIO | None = None,
) -> None:
    """Print a table that is the whole output.

    JSON is ``{"schema": 1, "rows": [{column: value}]}``. A table for people fits the terminal; text
    is folded between words, and nothing is cut.
    """
    to = to or sys.stdout
    if format is Format.JSON:
        print_json({"rows": [dict(zip(columns, row, strict=True)) for row in rows]}, to)
    elif format is Format.CSV:
        writer = csv.writer(to, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(cell) for cell in row] for row in rows)
    elif format is Format.MD:
        print(markdown(columns, [[human(cell) for cell in row] for row in rows]), file=to)
    else:
        _print_for_terminal(Sheet(title, columns, rows, words=None, in_lists=True), to)


def print_result(
    format: Format,
    value: object,
    columns: Sequence[str],
    records: Iterable[Mapping[str, object]],
    parts: Iterable[Part],
    *,
    made: str | None = None,
    kind: str = "",
    quiet: bool = False,
) -> None:
    """Print a result: ``value`` as JSON, ``records`` as CSV, or ``parts`` for people.

    Records may lack columns.

    On a terminal, the REF of what was ``made`` is on stdout, and the parts are on stderr unless
    ``quiet``. ``kind`` is the kind of that artifact, for the next command to run.
    """
    if format is Format.JSON:
        import msgspec

        print_json(msgspec.to_builtins(value))
    elif format is Format.CSV:
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow({name: _plain(cell) for name, cell in record.items()})
    elif made is None or format is not Format.TABLE:
        print_parts(parts, format)
    else:
        if not quiet:
            print_parts(parts, to=sys.stderr)
            print(file=sys.stderr)
        print(made)
        if kind:
            print_next(*next_commands(kind, made), quiet=quiet)


def print_parts(
    parts: Iterable[Part], format: Format = Format.TABLE, to: TextIO | None = None
) -> None:
    """Print tables and sentences for people, with a blank line between them."""
    to = to or sys.stdout
    for index, part in enumerate(part for part in parts if isinstance(part, Sheet) or part):
        if index:
            print(file=to)
        if not isinstance(part, Sheet):
            for line in part:
                print(one_line(line) if isinstance(part, Verbatim) else folded(line, to), file=to)
        elif format is Format.MD:
            print(f"{one_line(part.title)}\n\n" if part.title else "", end="", file=to)
            print_table("", part.columns, part.rows, format, to)
        else:
            _print_for_terminal(part, to)


def folded(line: str, to: TextIO, first: str = "") -> str:
    """Fold a sentence to the width of the terminal, after ``first``, as for an item of a list."""
    return textwrap.fill(
        one_line(line),
        width(to),
        initial_indent=first,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def print_dry_run(ref: str, rows: Sequence[tuple[str, object]], format: Format) -> None:
    """Print the REF and the size of what a run would make."""
    print_table("dry run", ("what", "value"), [("would make", ref), *rows], format)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown; ``|`` in a cell is escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def print_made(
    artifact: "Artifact",
    title: str,
    rows: Sequence[tuple[str, object]],
    *,
    made: bool,
    format: Format,
    quiet: bool,
    notes: Sequence[str] = (),
    more: Mapping[str, object] | None = None,
) -> None:
    """Print the artifact of a command: its REF on stdout, a table and notes on stderr.

    In another format than the table, everything is on stdout. JSON has the REF, the counts and
    ``more``.
    """
    columns, ref = ("what", "value"), artifact.ref
    if format is Format.JSON:
        print_json(
            {"ref": ref, "made": made, "counts": artifact.manifest.counts} | dict(more or {})
        )
        return
    if format is not Format.TABLE:
        print_table(title, columns, [("ref", ref), *rows], format)
        return
    if not quiet:
        print_table(title, columns, rows, to=sys.stderr)
        print(file=sys.stderr)
        for note in notes:
            print_note(note)
    print(ref)
    print_next(*next_commands(artifact.kind, ref), quiet=quiet)


#: The command that usually comes after an artifact of a kind was made.
_NEXT = {
    "raw": "numtok gen TASK",
    "data": "numtok profile {}",
    "table": "numtok train {}",
    "encoded": "numtok train {}",
    "model": "numtok eval {}",
    "report": "numtok compare {} OTHER",
    "probe": "numtok figure --help",
}


def next_commands(kind: str, ref: str) -> list[str]:
    """Return the commands that usually come next for an artifact."""
    command = _NEXT.get(kind, "")
    return [command.format(shlex.quote(ref.partition("@")[0]))] if command else []


def print_next(*commands: str, quiet: bool = False) -> None:
    """Print the next command to run on stderr, if a person reads the output."""
    if commands and not quiet and sys.stdout.isatty() and sys.stderr.isatty():
        for index, command in enumerate(commands):
            print(f"{'  or' if index else 'next'}: {one_line(command)}", file=sys.stderr)


def print_note(text: str) -> None:
    """Print a note on stderr: ``note: ...``, or ``numtok: ...`` if a log collects it."""
    if sys.stderr.isatty():
        print(folded(text, sys.stderr, "note: "), file=sys.stderr)
    else:
        print(f"numtok: {one_line(text)}", file=sys.stderr)


def rows_by_split(counts: Mapping[str, int]) -> list[tuple[str, object]]:
    """Return the number of rows of each split, as lines below that of all rows.

    >>> rows_by_split({"rows": 3, "rows_test": 1, "rows_train": 2})
    [('  test', 1), ('  train', 2)]
    """
    return [
        (f"  {key.removeprefix('rows_')}", count)
        for key, count in sorted(counts.items())
        if key.startswith("rows_")
    ]


def count_rows(counts: Mapping[str, int]) -> list[tuple[str, object]]:
    """Return counts as lines of a table: all rows, those of each split, then other counts.

    >>> count_rows({"left_out": 4, "rows": 3, "rows_train": 2})
    [('rows', 3), ('  train', 2), ('left out', 4)]
    """
    every = [("rows", counts["rows"])] if "rows" in counts else []
    others = [
        (key.replace("_", " "), count)
        for key, count in sorted(counts.items())
        if not key.startswith("rows")
    ]
    return [*every, *rows_by_split(counts), *others]


def human(cell: object) -> str:
    """Format a cell for people."""
    if cell is None:
        return "-"
    if isinstance(cell, int) and not isinstance(cell, (bool, Size)):
        return f"{cell:,}"
    if isinstance(cell, Formatted):
        return cell
    if isinstance(cell, float):
        return number(cell)
    return figure(cell) if isinstance(cell, Measured) else one_line(str(cell))


def width(to: TextIO) -> int:
    """Return the number of characters in a line of the terminal, or 80."""
    from rich.console import Console

    return Console(file=to).width


def _key(cell: object) -> float | None:
    if isinstance(cell, Measured):
        return cell.value
    if isinstance(cell, Formatted):
        return cell.key
    return float(cell) if isinstance(cell, (int, float)) else None


def _print_for_terminal(sheet: Sheet, to: TextIO) -> None:
    """Print a table below its title, or several if its columns do not fit side by side."""
    for line in textwrap.wrap(one_line(sheet.title), width(to), break_long_words=False):
        print(line, file=to)
    notes = [line for line in sheet.note.split("\n") if line]
    if sheet.rows:
        shown = sheet.shown()
        # Positions of the sheet's columns among those that are shown.
        positions = [index for index, column in enumerate(shown) if not column.interval]
        best = frozenset((row, positions[column]) for row, column in sheet.best())
        headings = frozenset(
            row
            for row, cells in enumerate(sheet.rows)
            if len(cells) > 1 and all(cell == "" for cell in cells[1:])
        )
        notes += print_tables(
            shown, table_width(to), to, best=best, headings=headings, in_lists=sheet.in_lists
        )
    for line in notes:
        print(folded(line, to), file=to)


def table_width(to: TextIO) -> int:
    """Return the characters per line of a table: of the terminal, or ``COLUMNS``. Piped output is
    not folded, so that names and REFs stay whole."""
    from rich.console import Console

    console = Console(file=to)
    return console.width if console.is_terminal or "COLUMNS" in os.environ else _UNFOLDED_LINE


def _plain(cell: object) -> object:
    if isinstance(cell, Size):
        return int(cell)
    return one_line(cell) if isinstance(cell, str) else cell
