"""Fields that several commands have."""

import math
import re
from functools import partial
from typing import Any

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.names import NAME

ARTIFACT = "Artifact"  # a section: what is made
_OF_NUMBERS = "Reading numbers off"

INPUTS = (
    "JSONL (.jsonl or .ndjson; plain, .gz or .zst), .parquet, a folder of them, "
    "s3://bucket/part-*.jsonl, - for standard input, a pipe, the REF of a data artifact; "
    "split=PATH puts all of a file in a split."
)
LONGEST_LINE = 256 << 20  # bytes, unless --max-line says another
_MOST_LINE = 1 << 30
_run_setting = partial(setting, swept=False, repeat=False)  # changes no result
_number_setting = partial(setting, section=_OF_NUMBERS)
_ENGINE = re.compile(r"local|ray(:([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5})?")


def name(help: str) -> Any:
    """What the artifact is called; None: what ``help`` says."""

    def wrong(value: str) -> str | None:
        if NAME.fullmatch(value):
            return None
        allowed = "lower-case letters, digits and ._- after a first letter or digit"
        return f"cannot be used; allowed are {allowed}"

    return setting(None, help, section=ARTIFACT, swept=False, refuse=wrong)


def html() -> Any:
    help = "Write a page, too: one file that needs no network. Needs the extra `pages`."
    return _run_setting(None, help)


def restart() -> Any:
    help = "Discard what a killed run left."
    return _run_setting(False, help, section=ARTIFACT)


def force() -> Any:
    help = "Make it again, and compare."
    return _run_setting(False, help, section=ARTIFACT)


def dry_run(help: str = "Say what would be made, and how big.") -> Any:
    return _run_setting(False, help)


def device(**facts: Any) -> Any:
    return setting("auto", "auto, cpu, cuda, cuda:1 or mps.", **facts)


def devices(help: str, default: str = "1", **facts: Any) -> Any:
    def wrong(value: str) -> str | None:
        possible = value == "all" or (value.isdecimal() and int(value) > 0)
        return None if possible else "is not possible; it is a number of devices, or all"

    help = f"So many side by side, {help}; or all."
    return _run_setting(default, help, metavar="N", refuse=wrong, **facts)


def workers() -> Any:
    help = "Processes. Default: by size and cores."
    return _run_setting(None, help, at_least=1)


def engine() -> Any:
    def wrong(value: str) -> str | None:
        if _ENGINE.fullmatch(value):
            return None
        return "is no engine; it is local, ray, or ray:HOST:PORT"

    help = (
        "Where that is done: local, or ray, the Ray cluster that this machine is a node of; "
        "ray:HOST:PORT names its head. Needs the extra `ray`."
    )
    return _run_setting("local", help, metavar="ENGINE", refuse=wrong)


def disk_limit() -> Any:
    help = (
        "Most that may be stored of what comes through pipes, downloads and archives: 20GB, or "
        "none for no limit. Default: 5% of the disk, 1 GiB at least, stays free."
    )
    return _run_setting(None, help, metavar="SIZE")


def max_line() -> Any:
    return setting(
        LONGEST_LINE,
        "Longest line.",
        metavar="BYTES",
        at_least=1,
        at_most=_MOST_LINE,
        shown_default="256 MiB",
        counts="version",
        omit_default=True,
    )


def on_error(help: str, **facts: Any) -> Any:
    choices = ("fail", "skip")
    return setting("fail", help, choices=choices, counts="version", omit_default=True, **facts)


def numerals() -> Any:
    help = "default, xval, or default with thousands=yes, percent=yes."
    return setting(None, help, metavar="SPEC")


def split_shares(
    help: str = "test=0.1[,seed=S]: by a hash of the cluster or the id; by=year,test=2020: by a "
    "group, in its order.",
) -> Any:
    return setting(None, help, metavar="SHARES")


def text_field(
    help: str = "Field that holds the text; doc.body is body within doc.", **facts: Any
) -> Any:
    return setting("text", help, metavar="NAME", counts="version", omit_default=True, **facts)


def against(**facts: Any) -> Any:
    help = "Published numbers beside, such as xval/table3."
    return setting(None, help, metavar="PAPER/TABLE", repeat=False, **facts)


def column(**facts: Any) -> Any:
    help = "Its column. Default: by the groups of the data."
    return setting(None, help, metavar="NAME", repeat=False, **facts)


def check_column(settings: Any) -> None:
    """A column is one of a published table."""
    if settings.column is not None and settings.against is None:
        raise UsageError(
            f"--column {settings.column!r} names a column of a published table; name the table "
            "with --against"
        )


def metrics(help: str) -> Any:
    return setting((), help, flag="metric", registry="metrics")


def fill(help: str) -> Any:
    choices = ("parallel", "left-to-right", "answers")
    return _number_setting(None, help, of="texts", choices=choices)


def decode() -> Any:
    help = "constrained by the scheme's grammar, or free."
    return _number_setting(
        "constrained", help, of="texts", choices=("constrained", "free"), omit_default=True
    )


def point() -> Any:
    help = (
        "Prediction: the distribution's median, mean or mode (highest density, or the tokens "
        "as written); tables also: raft. Default: median; mode for heads of tokens or digits."
    )
    choices = ("mode", "median", "mean", "raft")
    return _number_setting(None, help, choices=choices)


def draws() -> Any:
    help = "Numbers drawn where a distribution has no exact form; tables: in its place."
    return _number_setting(0, help, at_least=0, omit_default=True)


def temperature() -> Any:
    return _number_setting(
        1.0,
        "With --draws: of a decoder's tokens.",
        metavar="T",
        of="tables",
        above=0,
        below=math.inf,
        omit_default=True,
    )


def top_k() -> Any:
    help = "Likewise: only the K likeliest tokens. 0: all."
    return _number_setting(0, help, metavar="K", of="tables", at_least=0, omit_default=True)


def top_p() -> Any:
    help = "Likewise: only the likeliest that make up P."
    return _number_setting(
        1.0, help, metavar="P", of="tables", above=0, at_most=1, omit_default=True
    )


def batch_of_rows(help: str) -> Any:
    return _number_setting(256, help, metavar="ROWS", of="texts", at_least=1, repeat=False)
