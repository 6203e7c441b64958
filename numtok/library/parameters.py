"""Descriptions of settings for Python callers, in the NumPy docstring style.

A parameter is described by the help text of its setting. If that text refers to the command line,
an entry of ``DESCRIPTIONS`` replaces it.
"""

from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import get_args

from numtok.declaration import Setting, in_python, settings_in

_WIDTH = 88  # columns of a docstring
_MODEL = "REF of a trained model, or a model from :func:`numtok.train` or :func:`numtok.load`."
_REPORTS = "Reports on one test set: REFs, or objects from :func:`numtok.eval`."
_SCHEMES = "Specs of the schemes to include. Default: all."
_METRICS = "Further metrics by spec, such as 'adjusted-r2,p=4'."
_PUBLISHED = "Published results to show next to the report, such as 'xval/table3'."
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
    "compare.until": "Validation thresholds such as 'loss<=0.5': adds the number of training "
    "tokens until each was reached.",
    "compare.by": "Name of a group of the data. Adds a table per value of the group.",
    "reports": _REPORTS,
    "text_field": "JSON key or column that holds the text, such as 'doc.body' for a nested key. "
    "Default: 'text', or with ``target`` all fields.",
    "explain.text": "Text in which to show the numbers, in place of a number.",
    "encode.like": "REF of encoded data whose codec and settings to reuse.",
    "inputs": _INPUTS,
    "target": "Names of fields or columns to predict; rows become texts.",
    "race.target": "Field or column to predict; for texts, the target to score.",
    "table.target": "Column to predict.",
    "fields": "With ``target``: fields of the text. Default: all others.",
    "drop": "Fields or columns to leave out, such as an id.",
    "race.inputs": "Texts, as in :func:`numtok.encode`; or a table: its REF, or with ``target`` "
    "the path of a CSV, JSON Lines or Parquet file, or a data frame.",
    "race.models": "Frozen pretrained models for heads to read: 'hf:FOLDER_OR_ID', or the path of "
    "a GGUF file.",
    "race.schemes": "Specs to race: schemes for texts, heads for tables. Default: all that suit "
    "the data.",
    "not_numbers": "Zones without numbers: names ('ids', 'dates', 'times', 'smiles', 'urls', "
    "'versions') or regular expressions.",
    "max_line": "Longest line of an input file, in bytes.",
    "disk_limit": "Most disk space for downloads and unpacked archives, such as '20GB', or 'none'. "
    "Default: leaves 5% of the disk free, and at least 1 GiB.",
    "workers": "Number of processes. Default: by the size of the data and the number of cores.",
    "split": "Rule that assigns rows to splits: 'test=0.1[,seed=S]' by a hash of the id (or "
    "cluster), or 'by=year,test=2020' by a group in its order.",
    "race.split": "Rule that assigns rows to splits, for data without splits. Default: by time if "
    "the rows have one ('by=year,validation=2019,test=2021'), else "
    "'validation=0.12,calibration=0.08,test=0.15'.",
    "eval.split": "Split to predict.",
    "compare.record": "Folder with measurements, to whose PAPER.csv the values are added. Needs "
    "``against``.",
    "score.files": "JSONL files of answers, one per model; the others are compared with the first. "
    "With ``benchmark``, a file of answers or a report.",
    "score.truth": "JSONL file of the true values, joined by id. Default: a field of each answer. "
    "With ``benchmark``, the data.",
    "score.rules": "Rules that choose the number of an answer: 'strict', 'only-number', "
    "'first-number', 'last-number', 'boxed' or 'after:REGEX'. Default: strict, first-number, "
    "last-number and boxed.",
    "score.require": "Conditions to check for each model, such as 'exact-match>=0.7', with one "
    "rule. Violations are listed in the result.",
    "score.metrics": "Metrics by spec, such as 'exact-match'.",
    "score.benchmark": "Score as a benchmark does: 'nupa'.",
    "score.answers": "File of answers, if the first argument is the data of a benchmark.",
    "score.split": "Split of the data that the answers belong to.",
    "gen.split": "Fraction of the rows per split, such as 'train=0.8,test=0.2'. Default: those of "
    "the task.",
    "table.split": "Rule that assigns rows to splits: 'test=0.1' by a hash of the row number, or "
    "'by=year,test=2020' by a column. Default: columns named split or split_0, split_1 ..., "
    "else 'test=0.2,validation=0.1,calibration=0.1'.",
    "engine": "Where the work runs: 'local', or 'ray' on the Ray cluster of this machine "
    "('ray:HOST:PORT' names its head). Ray needs the extra `ray`.",
    "restart": "Discard the partial results of an interrupted run.",
    "force": "Run again even if the result exists, and compare both.",
    "dry_run": "Return an estimate of the result instead of creating it.",
    "race.dry_run": "Return the plan of the race without training.",
    "html": "Path of an HTML page to write, one file that works offline. Needs the extra `pages`.",
    "diagnose.target": "Name of the target whose numbers to analyze. Default: all.",
    "model": _MODEL,
    "eval.data": "Data encoded as the model's training data, or a table with the same columns. "
    "Default: the training data of the model.",
    "probe.data": "Data encoded as the model's training data.",
    "train.data": _TABLE_INPUT,
    "metrics": _METRICS,
    "against": _PUBLISHED,
    "eval.against": "Not available in Python; pass it to :func:`numtok.compare`.",
    "column": "Column of the published results. Default: by the groups of the data.",
    "temperature": "Sampling temperature of a decoder's tokens, with ``num_samples`` "
    "(table models).",
    "top_k": "Sample from the K most likely tokens only, with ``num_samples`` (table models). "
    "0: all.",
    "top_p": "Sample from the most likely tokens with a total probability of P only, with "
    "``num_samples`` (table models).",
    "schemes": _SCHEMES,
    "number": "The number to write, as a number or as text: -60.2, '6.02e23'.",
    "fetch.source": "Name of the data source.",
    "figure.kind": "Kind of figure. Its settings are further keyword arguments.",
    "figure.refs": "Reports or probes to draw, by REF or as objects; for 'density' models and a "
    "table.",
    "figure.out": "File to write; its suffix is .png, .svg or .pdf.",
    "figure.size": "Size in pixels, such as '800x600'.",
    "gen.task": "Name of the task. Its settings are further keyword arguments.",
    "gen.from_": "Field that the task reads (``temperature`` only).",
    "predict.model": "Model that predicts; with ``baseline``, the data that it is fitted to: a "
    "table, or the rows of records.",
    "predict.file": "Rows to predict: texts as JSONL, plain or compressed; or, without the target, "
    "a CSV, JSON Lines or Parquet file or a data frame.",
    "table.path": "CSV file with a header, Parquet file, or data frame.",
    "predict.text": "Texts to predict, in place of ``file``.",
    "probe.kind": "Kind of probe. Its settings are further keyword arguments.",
    "sweep.file": "Sweep file in TOML.",
    "sweep.changes": "Values that replace those of the file, such as 'train.steps=20' or "
    "'train.seed=[0, 1]'.",
    "sweep.part": "'K/M': train only every M-th model, starting with the K-th, for job arrays. "
    "A call without ``part`` then compares all of them.",
    "features": "Columns to use as features. Default: all others.",
    "train.profile": "Path of a Chrome trace of 5 steps to write.",
    "train.log": "Also write metrics as event files: 'tensorboard:DIR'.",
    "train.target": "Column to predict, if ``data`` is a file.",
    "train.curriculum": "Path of a TOML file of training phases. Needs ``steps``.",
}

#: Types of settings as docstrings name them.
_TYPES = {str: "str", int: "int", float: "float", bool: "bool", Path: "str or path"}


def description(command: str, setting: Setting) -> str:
    """Return the description of a setting for the docstring of a Python function."""
    for key in (f"{command}.{setting.name}", setting.name):
        if key in DESCRIPTIONS:
            return DESCRIPTIONS[key]
    default = "" if setting.shown_default is None else f" Default: {setting.shown_default}."
    return f"{setting.help.removesuffix('.')}.{default}"


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


def parameters(command: str, settings: type) -> list[str]:
    """Return the lines of a "Parameters" section, in NumPy style, for the settings of a command."""
    lines = []
    for setting in settings_in(settings).values():
        described = in_python(description(command, setting), settings)
        if setting.of is not None and setting.of[:-1] not in described:
            described += f" For {setting.of} only."
        lines.append(f"{setting.argument_name} : {type_name(setting)}")
        lines += wrap(described, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return lines
