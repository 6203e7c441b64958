"""Declarations of settings that several commands share."""

import math
import re
from functools import partial
from typing import Any

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.names import NAME

_DECODING = "Decoding"  # a section

INPUTS = (
    "JSONL (.jsonl or .ndjson; plain, .gz or .zst) or Parquet files, folders of them, "
    "s3://bucket/part-*.jsonl, - for standard input, or a REF of data; SPLIT=PATH puts a whole "
    "file in a split"
)
LONGEST_LINE = 256 << 20  # bytes, the default of --max-line
_MOST_LINE = 1 << 30
_run_setting = partial(setting, swept=False, repeat=False)  # does not change results
_rare_setting = partial(_run_setting, advanced=True)
_input_setting = partial(setting, counts="version", omit_default=True)
_number_setting = partial(setting, section=_DECODING)
_sampling = partial(_number_setting, of="tables", omit_default=True, advanced=True)
_ENGINE = re.compile(r"local|ray(:([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5})?")


def name(default: str) -> Any:
    """Declare a setting for the artifact name. ``default`` describes the default name in the
    help."""

    def wrong(value: str) -> str | None:
        if NAME.fullmatch(value):
            return None
        return "must be lower-case letters, digits and ._- after a first letter or digit"

    return setting(None, "Name of the artifact", swept=False, refuse=wrong, shown_default=default)


def html() -> Any:
    return _run_setting(None, "Also write a self-contained HTML page; needs the extra `pages`")


def restart() -> Any:
    return _rare_setting(False, "Start over instead of resuming an interrupted run")


def force() -> Any:
    return _rare_setting(False, "Rebuild an artifact and check that it is identical")


def dry_run(help: str = "Print what would be written and its size, then exit") -> Any:
    return _run_setting(False, help)


def device(**facts: Any) -> Any:
    return setting("auto", "auto, cpu, cuda, cuda:1 or mps", **facts)


def devices(help: str, default: str = "1", **facts: Any) -> Any:
    def wrong(value: str) -> str | None:
        possible = value == "all" or (value.isdecimal() and int(value) > 0)
        return None if possible else "must be a number of devices, or all"

    help = f"Number of devices, or all; {help}"
    return _run_setting(default, help, metavar="N", refuse=wrong, **facts)


def workers() -> Any:
    help = "Number of processes"
    return _rare_setting(None, help, at_least=1, shown_default="depends on size and cores")


def engine() -> Any:
    def wrong(value: str) -> str | None:
        if _ENGINE.fullmatch(value):
            return None
        return "must be local, ray, or ray:HOST:PORT"

    help = "local, ray (local cluster) or ray:HOST:PORT; Ray needs the extra `ray`"
    return _rare_setting("local", help, metavar="ENGINE", refuse=wrong)


def disk_limit() -> Any:
    help = "Disk space for piped, downloaded and unpacked input, such as 20GB; none: unlimited"
    default = "keeps 5% of the disk free, at least 1 GiB"
    return _rare_setting(None, help, metavar="SIZE", shown_default=default)


def max_line() -> Any:
    return _input_setting(
        LONGEST_LINE,
        "Maximum length of a line",
        advanced=True,
        metavar="BYTES",
        at_least=1,
        at_most=_MOST_LINE,
        shown_default="256 MiB",
    )


def on_error(help: str, **facts: Any) -> Any:
    return _input_setting("fail", help, choices=("fail", "skip"), **facts)


def numerals(**facts: Any) -> Any:
    help = "Rule for numbers: default, flags such as thousands,percent, or a preset such as eu"
    return setting(None, help, flag="numbers", formerly=("numerals",), metavar="SPEC", **facts)


def not_numbers(**facts: Any) -> Any:
    help = "Zone without numbers: ids, dates, times, smiles, urls, versions or a REGEX; repeatable"
    return setting((), help, metavar="ZONE", **facts)


def split_shares(
    help: str = "Random split, such as validation=0.1,test=0.1[,seed=S] (clusters stay whole); or "
    "split by a group: by=year,test=2020",
    default: str | None = None,
) -> Any:
    return setting(None, help, metavar="SPLITS", shown_default=default)


def text_field(
    help: str = "JSON key or column that holds the text, such as doc.body for a nested key",
    **facts: Any,
) -> Any:
    default = {"shown_default": "text; with --target, all other fields"}
    return _input_setting(None, help, metavar="NAME", single=True, **default | facts)


def against(**facts: Any) -> Any:
    help = "Published table to show next to the results, such as xval/table3"
    return setting(None, help, metavar="PAPER/TABLE", repeat=False, **facts)


def column(**facts: Any) -> Any:
    help = "Column of the published table"
    default = "depends on the groups of the data"
    return setting(None, help, metavar="NAME", repeat=False, shown_default=default, **facts)


def check_column(settings: Any) -> None:
    """Raise UsageError if the setting ``column`` is used without a published table
    (``against``)."""
    if settings.column is not None and settings.against is None:
        raise UsageError(
            f"--column needs a published table (got {settings.column!r}). Name it with --against"
        )


def part(folder: str, help: str) -> Any:
    """Declare the argument that names a registry part, whose settings become options."""
    return setting(help=help, argument=True, expands=True, registry=folder)


def require(help: str) -> Any:
    return setting((), help, metavar="GATE", swept=False)


def metrics(help: str) -> Any:
    return setting((), help, flag="metric", registry="metrics")


def fill(help: str) -> Any:
    choices = ("parallel", "left-to-right", "answers")
    return _number_setting(None, help, metavar="ORDER", of="texts", choices=choices)


def decode() -> Any:
    help = "Decoding: constrained by the scheme's grammar, or free"
    return _number_setting(
        "constrained",
        help,
        metavar="MODE",
        of="texts",
        choices=("constrained", "free"),
        omit_default=True,
    )


def point() -> Any:
    help = "Point prediction: median, mean or mode of the distribution; raft for tables"
    choices = ("mode", "median", "mean", "raft")
    default = "median; mode for heads of tokens or digits"
    return _number_setting(None, help, metavar="POINT", choices=choices, shown_default=default)


def draws() -> Any:
    help = "Samples from distributions without an exact form; for tables, from all of them"
    return _number_setting(
        0, help, flag="num-samples", formerly=("draws",), at_least=0, omit_default=True
    )


def temperature() -> Any:
    """Declare the temperature of the distribution that tokens are sampled from."""
    help = "Temperature of a decoder's tokens, with --num-samples"
    return _sampling(1.0, help, metavar="T", above=0, below=math.inf)


def top_k() -> Any:
    """Declare how many of the likeliest tokens are sampled from."""
    help = "Sample only from the K likeliest tokens, with --num-samples; 0 for all"
    return _sampling(0, help, metavar="K", at_least=0)


def top_p() -> Any:
    """Declare the total probability of the tokens that are sampled from."""
    help = "Sample only from the likeliest tokens with total probability P, with --num-samples"
    return _sampling(1.0, help, metavar="P", above=0, at_most=1)


def batch_of_rows(help: str) -> Any:
    return _number_setting(256, help, metavar="ROWS", of="texts", at_least=1, repeat=False)
