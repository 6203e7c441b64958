"""What commands share: option types, the store, and how a table is printed."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeVar

import typer

from numtok.errors import UsageError

if TYPE_CHECKING:
    from numtok.store.store import Store

SCHEMA = 1  # of everything printed as JSON
T = TypeVar("T")


class Format(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
OneJsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RestartOption = Annotated[bool, typer.Option("--restart", help="Discard what a killed run left.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Make it again, and compare.")]
AgainstOption = Annotated[
    str | None,
    typer.Option(metavar="PAPER/TABLE", help="Published numbers beside, such as xval/table3."),
]
ColumnOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Its column. Default: by the groups of the data."),
]
DecodeOption = Annotated[str, typer.Option(help="constrained by the scheme's grammar, or free.")]
PointOption = Annotated[
    str | None,
    typer.Option(
        help="The prediction: mode (greedy), or the distribution's median, mean; tables: raft, "
        "too. Default: mode; tables: median."
    ),
]
DrawsOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Numbers drawn where a distribution has no exact form; tables: in its place.",
    ),
]
TemperatureOption = Annotated[
    float, typer.Option(metavar="T", help="Tables, with --draws: of a decoder's tokens.")
]
TopKOption = Annotated[
    int, typer.Option(metavar="K", help="Likewise: only the K likeliest tokens. 0: all.")
]
TopPOption = Annotated[
    float, typer.Option(metavar="P", help="Likewise: only the likeliest that make up P.")
]
InputsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="JSONL (.jsonl, .jsonl.gz, .jsonl.zst), .parquet, a folder of them, - for "
        "standard input, a pipe, the REF of a data artifact; split=PATH puts all of a file in a "
        "split.",
    ),
]
SplitOption = Annotated[
    str | None,
    typer.Option(metavar="SHARES", help="test=0.1[,seed=S]: by a hash of the cluster or the id."),
]
NumeralsOption = Annotated[
    str | None,
    typer.Option(metavar="SPEC", help="default, xval, or default with thousands=yes, percent=yes."),
]
TextFieldOption = Annotated[str, typer.Option(metavar="NAME", help="Where the text is.")]
WorkersOption = Annotated[
    int | None, typer.Option(metavar="N", help="Processes. Default: by size and cores.")
]
MaxLineOption = Annotated[
    int, typer.Option(metavar="BYTES", show_default="256 MiB", help="Longest line.")
]
DiskLimitOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most that may be stored of what comes through pipes, downloads and archives: 20GB, "
        "or none for no limit. Default: 5% of the disk, 1 GiB at least, stays free.",
    ),
]
GAP = 3  # characters between the columns of a table
LONGEST_LINE = 256 << 20  # bytes, unless --max-line says another
RefArgument = Annotated[
    str,
    typer.Argument(
        metavar="REF",
        help="name@version, name, kind/name, the start of a version, or an artifact's folder.",
    ),
]


@dataclass(frozen=True)
class Invocation:
    """The global options of this run; ``context.obj`` of every command."""

    store: Path
    quiet: bool

    def note(self, text: str) -> None:
        """Tell a waiting user something, on stderr."""
        if not self.quiet:
            print(f"numtok: {one_line(text)}", file=sys.stderr)


class Size(int):
    """A number of bytes; a number in the formats for programs, with a unit in the others."""

    def __str__(self) -> str:
        value, unit = float(self), "B"
        for larger in ("kB", "MB", "GB", "TB"):
            if value >= 999.5:
                value, unit = value / 1000, larger
        return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"


def open_store(context: typer.Context) -> "Store":
    """The store that the global options name."""
    from numtok.store.store import Store

    invocation: Invocation = context.obj
    return Store(invocation.store, invocation.note)


def given(context: typer.Context, option: str, value: T | None) -> T | None:
    """The value of an option unless it comes from numtok.toml, then None."""
    source = context.get_parameter_source(option)
    return None if source is not None and source.name == "DEFAULT_MAP" else value


def refuse(context: typer.Context, options: Iterable[str], of: str) -> None:
    """Raise UsageError where one of these options was typed, which mean nothing here."""
    for option in typed(context, options):
        flag = next(one for one in context.command.params if one.name == option).opts[0]
        raise UsageError(f"{flag} means nothing for {of}; leave it out")


def typed(context: typer.Context, options: Iterable[str]) -> list[str]:
    """Those of some options that stand on the command line."""
    sources = ((option, context.get_parameter_source(option)) for option in options)
    return [option for option, source in sources if source and source.name == "COMMANDLINE"]


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


def print_json(value: dict[str, Any], to: TextIO | None = None) -> None:
    """One JSON object, with the schema version that programs can rely on."""
    print(json.dumps({"schema": SCHEMA} | value), file=to or sys.stdout)


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
        lines = [columns, ["---"] * len(columns), *([_human(cell) for cell in row] for row in rows)]
        for line in lines:
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |", file=to)
    else:
        _print_rich_table(title, columns, rows, to)


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
            print(f"numtok: {note}", file=sys.stderr)
    print(ref)


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
    console = Console(file=to)
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


def _widths(rows: Sequence[Sequence[str]], limit: int) -> list[int | None]:
    """Characters of each column of a table that has to fold its cells: between words, and in the
    longest ones where words alone are too wide. None for each where nothing has to fold.

    >>> _widths([["scheme", "source"], ["p10", "xVal, Table 1"]], 20)
    [6, 11]
    """
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    whole = [max(map(cell_len, column)) for column in columns]
    room = limit - GAP * (len(columns) - 1)
    if sum(whole) <= room or room < len(columns):
        return [None] * len(columns)
    widths = [max(cell_len(word) for word in " ".join(column).split(" ")) for column in columns]
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    while sum(widths) < room:  # to the one that lacks most
        lacking = [one - other for one, other in zip(whole, widths, strict=True)]
        widths[lacking.index(max(lacking))] += 1
    return [*widths]


def _plain(cell: object) -> object:
    if isinstance(cell, Size):
        return int(cell)
    return one_line(cell) if isinstance(cell, str) else cell


def _human(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int) and not isinstance(cell, (bool, Size)):
        return f"{cell:,}"
    return f"{cell:.6g}" if isinstance(cell, float) else one_line(str(cell))
