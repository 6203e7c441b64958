"""Table: a user's own file, CSV or Parquet -> a table artifact.

A row of the file is a row of the table. Rows are counted from 1, a CSV file's header apart.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from numtok.data.reading.sources import as_name
from numtok.data.reading.split_rule import SplitRule
from numtok.data.tables.columns import (
    SPLIT_COLUMN,
    TableColumns,
    feature_column,
    has_target,
    split_column,
    target_column,
    write_columns,
)
from numtok.data.tables.file import (
    FORMATS,
    CsvForm,
    check_format,
    check_names,
    csv_form,
    parsed,
    read_csv,
    read_file,
)
from numtok.declaration import command_line
from numtok.errors import UsageError, unknown
from numtok.settings.table import Config as Config
from numtok.store.artifact import TABLE, Artifact, MadeArtifact, Parent
from numtok.store.store import Store

REVISION = 1
SPLIT = "test=0.2,validation=0.1"
_CODE = r"^\s*[+-]?0(?:[0-9]|[xX])"  # what no number begins with


def table_of(path: str, target: str, store: Store) -> Artifact:
    """The table that a user's file is, which is made if it is not there.

    Raises UsageError for a file of another format, and otherwise as :func:`run`.
    """
    if not path.endswith(FORMATS):
        raise UsageError(
            f"--target is for a table's file ({' or '.join(FORMATS)}), and {path} is none; leave "
            "--target out"
        )
    return run(Config(path, target=target), store).artifact


def run(config: Config, store: Store) -> MadeArtifact:
    """Make a table artifact of a file, or find the one that is there.

    Raises UsageError, DataError (naming the column, and the row where it is one) and StoreError.
    """
    started = time.monotonic()
    check_format(config.path)
    data = read_file(Path(config.path))
    rule = SplitRule.parse(config.split or SPLIT)
    chosen = rule != SplitRule.parse(SPLIT)  # who writes the default out has the same table
    settings = {
        "stage": "table",
        "revision": REVISION,
        "format": Path(config.path).suffix,
        "target": config.target,
        "split": rule.settings() if chosen else None,
        "seed": rule.seed if chosen else None,
        "features": list(config.features),
        "drop": sorted(config.drop),
    }
    if config.on_error == "skip":
        settings["on_error"] = "skip"
    name = config.name or as_name(Path(config.path).stem)
    parent = Parent("file", config.path, hashlib.sha256(data).hexdigest(), len(data))
    command = ["numtok", "table", *command_line(replace(config, name=name))]
    with store.draft(TABLE, name, settings, parents=[parent], command=command, how=config) as draft:
        if isinstance(draft, Artifact):
            return MadeArtifact(draft, made=False)
        columns = _columns(config, parsed(config.path, data), rule)
        if config.path.endswith(".csv"):
            form = csv_form(data)
            first = [] if form.note is None else [form.note]
            notes = (*first, *columns.notes, *_codes(data, columns, form))
            columns = replace(columns, notes=notes)
        counts = write_columns(draft.path, columns)
        return MadeArtifact(
            draft.publish(counts, {"seconds": time.monotonic() - started}), made=True
        )


def _codes(data: bytes, columns: TableColumns, form: CsvForm) -> Iterator[str]:
    """Which features may be codes, though Arrow takes 00037 for 37 and 0x1F for 31."""
    names = [name for name, one in columns.features.items() if pa.types.is_floating(one.type)]
    if not names:
        return
    texts = dict.fromkeys(names, pa.string())
    options = pyarrow.csv.ConvertOptions(include_columns=names, column_types=texts)
    written = read_csv(data, options, form)
    for name in names:
        row = pc.index(pc.match_substring_regex(written[name], _CODE), True).as_py()
        if row >= 0:
            yield (
                f"{name!r} is a number, though {written[name][row].as_py()!r} in row {row + 1} "
                "looks like a code; with a letter before it (z00037) it is a category"
            )


def _columns(config: Config, table: "pa.Table", rule: SplitRule) -> TableColumns:
    """The columns that the settings name, checked."""
    path, names = config.path, table.column_names
    check_names(path, names)
    for option, given in (
        ("target", [config.target]),
        ("feature", config.features),
        ("column to --drop", config.drop),
    ):
        for name in given:
            if name not in names:
                alone = len(names) == 1 and path.endswith(".csv")
                hint = (
                    "there is one column; are fields separated by commas or semicolons?"
                    if alone
                    else ""
                )
                raise UsageError(f"{path}: {unknown(option, name, filter(None, names), hint)}")
    left = [name for name in names if name not in (config.target, *config.drop)]
    folds = [name for name in left if SPLIT_COLUMN.fullmatch(name) and name not in config.features]
    folds.sort(key=lambda name: int(name.partition("_")[2] or -1))
    if folds and config.split is not None:
        raise UsageError(
            f"--split has no effect here: {path} has the column {folds[0]!r}; leave it out, or "
            f"leave the column (--drop {folds[0]})"
        )
    kept = _kept(config, table[config.target])
    target = target_column(path, config.target, table[config.target].filter(kept))
    features, notes = {}, _skipped(config.target, kept)
    for name in config.features or [name for name in left if name not in folds]:
        if why := _no_feature(name, names, table[name]):
            notes.append(f"{why} and is left out")
            continue
        column, note = feature_column(path, name, table[name])
        features[name] = column.filter(kept)
        notes += [note] if note else []
    assigned = {name: split_column(path, name, table[name]) for name in folds}
    if not folds:
        assigned = {"split": pa.array(_splits(path, table, rule), pa.string())}
    assigned = {name: splits.filter(kept) for name, splits in assigned.items()}
    return TableColumns(
        where=path,
        target_name=config.target,
        target=target,
        features=features,
        assigned=assigned,
        notes=tuple(notes),
    )


def _kept(config: Config, target: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """Return which rows [n] are kept: all, unless those without a usable target are skipped. If
    none is usable, all are kept, and :func:`target_column` says why."""
    every = pa.repeat(True, len(target))
    if config.on_error == "fail":
        return every
    kept = has_target(target).combine_chunks()
    return kept if pc.any(kept).as_py() else every


def _skipped(target: str, kept: "pa.Array[Any]") -> list[str]:
    count = len(kept) - kept.true_count
    if not count:
        return []
    return [f"skipped {count:,} of {len(kept):,} rows, whose target {target!r} is not usable"]


def _splits(path: str, table: "pa.Table", rule: SplitRule) -> list[str]:
    """The split of each row: by a hash of its number, or by its value of a column."""
    if rule.by is None:
        return [rule.split_of(str(row)) for row in range(len(table))]
    if rule.by not in table.column_names:
        known = filter(None, table.column_names)
        raise UsageError(f"{path}: {unknown('column of --split', rule.by, known)}")
    return [rule.split_at(value) for value in table[rule.by].cast(pa.string()).to_pylist()]


def _no_feature(name: str, names: Sequence[str], column: "pa.ChunkedArray[Any]") -> str | None:
    """Why a column is left out, if it is: pandas writes the number of each row beside the rest."""
    if not name:
        return f"column {names.index(name) + 1} has no name"
    if name.startswith("__index_level_"):
        return f"{name!r} is an index of pandas"
    missing = column.null_count
    if pa.types.is_floating(column.type):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
    return f"{name!r} is empty" if missing == len(column) else None
