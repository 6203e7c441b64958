"""Prints results as readable tables, JSON, CSV or Markdown, and the REFs of artifacts."""

import csv
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

from numtok.cli.output.figures import Formatted, Measured, figure, number
from numtok.cli.output.layout import TableColumn, columns_of, width_of

if TYPE_CHECKING:
    from numtok.evaluation.comparison.requirements import RequirementResult
    from numtok.store.artifact import Artifact

SCHEMA = 1  # version of the JSON output
_UNFOLDED_LINE = 1 << 16  # characters, more than any table has
_SHOWN = 1_000  # characters of a row of text in a dry run


class Format(StrEnum):
    """Output format of a command."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


@dataclass(frozen=True)
class Sheet:
    """A table to print on a terminal, as Markdown or on an HTML page.

    rows
        Cells: text, numbers, values with an interval, or None. They are formatted when printed.
    words
        Text columns that are wrapped if the table is too wide; None stands for all text columns
        except the first. No other cell is ever wrapped.
    in_lists
        True if each row takes several lines when the table is still too wide. Otherwise, the
        columns are divided into several tables.
    picks
        Key of each row, by which charts on an HTML page select it. Rows without a key come last.
    better
        Better direction, "higher" or "lower", keyed by column. In these columns, the best value
        among the rows with a key is bold.
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
        """Width of the printed table in characters, if nothing is wrapped."""
        return width_of(self.shown())

    @property
    def narrowest(self) -> int:
        """Width of the printed table in characters, with each interval below its value."""
        return width_of(self.shown(), below=True)

    def shown(self) -> list[TableColumn]:
        """Return the columns as printed on a terminal, with intervals in separate columns."""
        texts = [[human(cell) for cell in row] for row in self.rows]
        return columns_of(self.columns, self.rows, texts, self.words)

    def best(self) -> frozenset[tuple[int, int]]:
        """Return the (row, column) of each best value, for the columns in ``better``."""
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
        """Return a copy with only the columns at the indices ``kept``."""
        columns = [self.columns[column] for column in kept]
        rows = [[row[column] for column in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows)

    def without_empty(self) -> "Sheet":
        """Return a copy without the columns that are empty in every row."""
        every = range(len(self.columns))
        return self.of_columns(
            [column for column in every if any(row[column] not in (None, "") for row in self.rows)]
        )


class Verbatim(list[str]):
    """Lines that are printed without wrapping, so that they can be copied."""


#: Rows of a table of facts: an item and its value.
Rows = list[tuple[str, object]]
#: Part of a printed result: a table, or sentences, each of which starts on a new line.
Part = Sheet | Sequence[str]


class Size(int):
    """Number of bytes: shown with a unit in tables and Markdown, and as an integer in JSON and
    CSV."""

    def __str__(self) -> str:
        value, unit = float(self), "B"
        for larger in ("kB", "MB", "GB", "TB"):
            if value >= 999.5:
                value, unit = value / 1000, larger
        return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"


def one_line(text: str) -> str:
    r"""Return a text as one line, with control and other unprintable characters written as escapes.

    >>> one_line("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def print_json(value: Mapping[str, Any], to: TextIO | None = None) -> None:
    """Print a JSON object, with the version of its schema added as ``schema``."""
    print(json.dumps({"schema": SCHEMA} | dict(value)), file=to or sys.stdout)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    format: Format = Format.TABLE,
    to: TextIO | None = None,
) -> None:
    """Print a table as the only output of a command.

    JSON is ``{"schema": 1, "rows": [{column: value}]}``. In the format ``table``, text is wrapped
    between words to fit the terminal, and never truncated.
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
    following: Sequence[str] = (),
    quiet: bool = False,
) -> None:
    """Print a result: ``value`` as JSON, ``records`` as CSV, or ``parts`` as tables or Markdown.

    records
        CSV rows, each a mapping from columns to values. Missing columns are left empty.
    made
        REF of the artifact that the command made. In the format ``table``, it is printed on stdout,
        and the parts on stderr unless ``quiet``.
    following
        Commands to suggest after that.
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
        print_next(*following, quiet=quiet)


def print_parts(
    parts: Iterable[Part], format: Format = Format.TABLE, to: TextIO | None = None
) -> None:
    """Print tables and sentences with blank lines between them, as Markdown or for a terminal."""
    to = to or sys.stdout
    for index, part in enumerate(part for part in parts if isinstance(part, Sheet) or part):
        if index:
            print(file=to)
        if not isinstance(part, Sheet):
            for line in part:
                whole = format is Format.MD or isinstance(part, Verbatim)
                print(one_line(line) if whole else folded(line, to), file=to)
        elif format is Format.MD:
            print(f"{one_line(part.title)}\n\n" if part.title else "", end="", file=to)
            print_table("", part.columns, part.rows, format, to)
            if part.note:
                print("", *map(one_line, part.note.split("\n")), sep="\n", file=to)
        else:
            _print_for_terminal(part, to)


def folded(line: str, to: TextIO, first: str = "") -> str:
    """Return a sentence wrapped to the width of the terminal. The first line begins with ``first``,
    such as the bullet of a list item."""
    return textwrap.fill(
        one_line(line),
        width(to),
        initial_indent=first,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def print_dry_run(
    ref: str, rows: Sequence[tuple[str, object]], format: Format, texts: Sequence[str] = ()
) -> None:
    """Print the REF of the artifact that a run would make, and a table of what it would contain.
    ``texts`` are its first rows. On a terminal, they have a table of their own, which wraps, and
    the middle of long rows is left out."""
    facts: Rows = [("would make", ref), *rows]
    if format is not Format.TABLE:
        facts += [(f"row {row}", text) for row, text in enumerate(texts, 1)]
    print_table("dry run", _facts_columns(format), facts, format)
    if texts and format is Format.TABLE:
        print()
        print_table("", ("row", "text"), list(enumerate(map(_without_middle, texts), 1)))


def _without_middle(text: str) -> str:
    """Shorten a long text to its beginning and its end, where targets are."""
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN // 2]} [...] {text[-_SHOWN // 2 :]}"


def _facts_columns(format: Format) -> tuple[str, str]:
    """Return the headings of a table of facts; JSON and CSV keep ``what``."""
    return ("item" if format is Format.TABLE else "what"), "value"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; ``|`` in a cell is escaped."""
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
    """Print the artifact that a command made: its REF on stdout, a table and notes on stderr.

    In formats other than ``table``, everything is printed on stdout. JSON contains the REF, the
    counts and ``more``. ``made`` is False if the artifact already existed.
    """
    columns, ref = _facts_columns(format), artifact.ref
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
    if command := _NEXT.get(artifact.kind):
        print_next(f"numtok {command} {shlex.quote(artifact.name)}", quiet=quiet)


#: Command that usually comes next, by kind of artifact.
_NEXT = {"data": "profile", "table": "train", "encoded": "train", "model": "eval"}


def print_next(*commands: str, quiet: bool = False) -> None:
    """Print suggested next commands on stderr if stdout and stderr are terminals, unless
    ``quiet`` is set."""
    if commands and not quiet and sys.stdout.isatty() and sys.stderr.isatty():
        for index, command in enumerate(commands):
            print(f"{'  or' if index else 'next'}: {one_line(command)}", file=sys.stderr)


def print_note(text: str) -> None:
    """Print a note on stderr: ``note: ...`` on a terminal, and ``numtok: ...`` elsewhere."""
    if sys.stderr.isatty():
        print(folded(text, sys.stderr, "note: "), file=sys.stderr)
    else:
        print(f"numtok: {one_line(text)}", file=sys.stderr)


def rows_by_split(counts: Mapping[str, int]) -> Rows:
    """Return table rows with the number of rows of each split, indented below the total.

    >>> rows_by_split({"rows": 3, "rows_test": 1, "rows_train": 2})
    [('  test', 1), ('  train', 2)]
    """
    return [
        (f"  {key.removeprefix('rows_')}", count)
        for key, count in sorted(counts.items())
        if key.startswith("rows_")
    ]


def count_rows(counts: Mapping[str, int]) -> Rows:
    """Return counts as table rows: the total number of rows, rows per split, then other counts.

    >>> count_rows({"left_out": 4, "rows": 3, "rows_train": 2})
    [('rows', 3), ('  train', 2), ('left out', 4)]
    """
    every: Rows = [("rows", counts["rows"])] if "rows" in counts else []
    every += rows_by_split(counts)
    for key, count in sorted(counts.items()):
        if not key.startswith("rows"):
            every.append((key.replace("_", " "), count))
    return every


def requirements_sheet(results: "Sequence[RequirementResult]", what: str) -> Iterator[Sheet]:
    """Yield a table of requirements and whether they are met, if there are any. ``what`` is the
    heading of the reports or models that were checked."""
    if results:
        rows = [
            [one.requirement, one.report, one.value, "met" if one.met else "NOT MET"]
            for one in results
        ]
        yield Sheet("requirements", ("requirement", what, "value", "verdict"), rows)


def human(cell: object) -> str:
    """Return a cell as readable text, with numbers rounded and None as ``-``."""
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
    """Return the width of the terminal in characters, or 80 if it is unknown."""
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
    from numtok.cli.output.drawing import print_tables  # late: it imports rich

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
    """Return the maximum width of a table in characters: the width of the terminal, or ``COLUMNS``
    if it is set. Piped output is not wrapped, so names and REFs stay whole."""
    from rich.console import Console

    console = Console(file=to)
    return console.width if console.is_terminal or "COLUMNS" in os.environ else _UNFOLDED_LINE


def _plain(cell: object) -> object:
    if isinstance(cell, Size):
        return int(cell)
    return one_line(cell) if isinstance(cell, str) else cell
