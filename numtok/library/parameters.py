"""Descriptions of settings for Python callers, in the NumPy docstring style.

A parameter is described by the help text of its setting. If that text refers to the command line,
an entry of ``DESCRIPTIONS`` replaces it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import get_args

from numtok.declaration import Setting, settings_in
from numtok.setting_names import in_python

_WIDTH = 88  # columns of a docstring
_MODEL = "REF of a trained model, or a model from :func:`numtok.train` or :func:`numtok.load`."
_REPORTS = "Reports on one test set: REFs, or objects from :func:`numtok.eval`."
#: Ends of help texts that are about the command line.
_OF_COMMANDS = re.compile(r"; (repeatable|quote a \w+ that contains a comma.*)$")
_INPUTS = (
    "Files (JSONL, plain or compressed, or Parquet), folders, S3 URLs, or data from "
    ":func:`numtok.gen` or :func:`numtok.fetch`; or a data frame. 'SPLIT=PATH' assigns all rows of "
    "a file to a split."
)
_TABLE_INPUT = (
    "Encoded data or a table: a REF, an object, or with ``target`` the path of a file or a data "
    "frame."
)

#: Keys are ``command.parameter``, or ``parameter`` for all commands without an entry of their own.
DESCRIPTIONS: Mapping[str, str] = {
    "compare.metrics": "Metrics to compare, by spec: 'r2', 'relative-error-over,limit=0.1'. "
    "Default: those of the reports.",
    "compare.require": "Conditions to check on each report, such as 'r2>=0.99'. Violations are "
    "listed in the result.",
    "reports": _REPORTS,
    "explain.text": "Text in which to show the numbers, in place of a number.",
    "inputs": _INPUTS,
    "race.inputs": "Texts, as in :func:`numtok.encode`; or a table: its REF, or with ``target`` "
    "the path of a CSV, JSON Lines or Parquet file, or a data frame.",
    "max_line": "Longest line of an input file, in bytes.",
    "score.files": "JSONL files of answers, one per model; the others are compared with the first. "
    "With ``benchmark``, a file of answers or a report.",
    "score.require": "Conditions to check for each model, such as 'exact-match>=0.7', with one "
    "rule. Violations are listed in the result.",
    "dry_run": "Return an estimate of the result instead of creating it.",
    "race.dry_run": "Return the plan of the race without training.",
    "eval.model": _MODEL,
    "probe.model": _MODEL,
    "train.data": _TABLE_INPUT,
    "eval.against": "Not available in Python; pass it to :func:`numtok.compare`.",
    "fetch.source": "Name of the data source.",
    "figure.kind": "Kind of figure. Its settings are further keyword arguments.",
    "figure.refs": "Reports or probes to draw, by REF or as objects; for 'density' models and a "
    "table.",
    "gen.task": "Name of the task. Its settings are further keyword arguments.",
    "predict.model": "Model that predicts; with ``baseline``, the data that it is fitted to: a "
    "table, or the rows of records.",
    "predict.file": "Rows to predict: texts as JSONL, plain or compressed; or, without the target, "
    "a CSV, JSON Lines or Parquet file or a data frame.",
    "table.path": "CSV file with a header, Parquet file, or data frame.",
    "probe.kind": "Kind of probe. Its settings are further keyword arguments.",
    "sweep.file": "Sweep file in TOML.",
    "sweep.part": "'K/M': train only every M-th model, starting with the K-th, for job arrays. "
    "A call without ``part`` then compares all of them.",
    "train.log": "Also write metrics as event files: 'tensorboard:DIR'.",
}

#: Types of settings as docstrings name them.
_TYPES = {str: "str", int: "int", float: "float", bool: "bool", Path: "str or path"}


def description(settings: type, setting: Setting) -> str:
    """Return the description of a command's setting for the docstring of a Python function."""
    command = settings.__module__.rpartition(".")[2]
    for key in (f"{command}.{setting.name}", setting.name):
        if key in DESCRIPTIONS:
            return DESCRIPTIONS[key]
    default = "" if setting.shown_default is None else f" Default: {setting.shown_default}."
    text = _OF_COMMANDS.sub("", setting.help).removesuffix(".")
    return in_python(f"{text}.{default}", settings)


def type_name(setting: Setting) -> str:
    """Return the type of a setting in the form that docstrings use.

    >>> type_name(Setting(default=None, type=int | None))
    'int, optional'
    >>> type_name(Setting(default=(), type=tuple[str, ...]))
    'str or sequence of str, optional'
    """
    kinds = get_args(setting.type) or (setting.type,)
    if setting.several:
        name = "str or sequence of str"
    elif setting.choices:
        name = f"{{{', '.join(map(repr, setting.choices))}}}"
    else:
        name = " or ".join(_TYPES.get(kind, str(kind)) for kind in kinds if kind is not NoneType)
    if setting.required:
        return name
    return (
        f"{name}, optional"
        if setting.default in (None, ())
        else f"{name}, default {setting.default!r}"
    )


def parameters(settings: type) -> list[str]:
    """Return the lines of a "Parameters" section, in NumPy style, for the settings of a command."""
    lines = []
    for setting in settings_in(settings).values():
        described = description(settings, setting)
        if setting.of is not None and setting.of[:-1] not in described:
            described += f" For {setting.of} only."
        lines.append(f"{setting.argument_name} : {type_name(setting)}")
        lines += wrap(described, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return lines
