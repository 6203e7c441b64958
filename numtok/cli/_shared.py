"""What commands share: option types and the store."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from numtok.cli.output.printing import Format, one_line
from numtok.errors import UsageError

if TYPE_CHECKING:
    from numtok.store.store import Store

T = TypeVar("T")


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
