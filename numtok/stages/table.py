"""table: makes a table artifact from a user's own CSV or Parquet file.

Each row of the file becomes a row of the table. Row numbers start at 1 and do not count a CSV
header.
"""

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from numtok.data.reading.sources import CSV, as_name
from numtok.data.reading.split_rule import SplitRule, split_twice
from numtok.data.records.columns import index_reason
from numtok.data.records.reader import FORMATS, Records, read_records
from numtok.data.records.splits import splits_of
from numtok.data.records.template import target_literals, usable_targets
from numtok.data.records.typed import TypedColumns, date_parts, is_date, typed_columns
from numtok.data.tables.columns import (
    SPLIT_COLUMN,
    TableColumns,
    feature_column,
    split_column,
    target_column,
    write_columns,
)
from numtok.data.tables.file import (
    CsvForm,
    check_format,
    check_names,
    csv_form,
    read_csv,
    read_file,
)
from numtok.errors import UsageError, unknown
from numtok.setting_words import command_line
from numtok.settings.table import Config as Config
from numtok.store.artifact import TABLE, Artifact, MadeArtifact, Parent
from numtok.store.store import Store

REVISION = 5
SPLIT = "test=0.2,validation=0.1,calibration=0.1"
_CODE = r"^\s*[+-]?0(?:[0-9]|[xX])"  # codes such as 00037 or 0x1F
_MAYBE_CODE = re.compile(rb"[\s,;\"][+-]?0[0-9xX]")


def table_of(path: str, target: str, store: Store) -> Artifact:
    """Return the table artifact for a user's file. The artifact is made if it does not exist yet.

    Raises UsageError if the file is neither CSV nor Parquet, and the same errors as :func:`run`.
    """
    if not path.endswith(FORMATS):
        raise UsageError(
            f"--target only applies to table files ({', '.join(FORMATS)}), not to {path}. Remove "
            "--target"
        )
    return run(Config(path, target=target), store).artifact


def run(config: Config, store: Store, records: Records | None = None) -> MadeArtifact:
    """Make a table artifact from a file, or return the existing one.

    ``records`` are the records of the file; None to read them if they are needed.
    Raises UsageError, DataError (naming the column, and the row if there is one) and StoreError.
    """
    started = time.monotonic()
    check_format(config.path, FORMATS)
    data = read_file(Path(config.path))
    rule = SplitRule.parse(config.split or SPLIT)
    chosen = rule != SplitRule.parse(SPLIT)  # typing the default gives the same table
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
        skip = config.on_error == "skip"
        typed = typed_columns(config.path, data, skip=skip)
        columns, notes = _columns(config, typed, rule, records), typed.notes
        codes: Iterator[str] = iter(())
        decimal = None
        if config.path.endswith(CSV):
            form = csv_form(data)
            decimal = form.decimal if form.separator != "," else None
            notes = [note for note in (form.note, *notes) if note is not None]
            if _MAYBE_CODE.search(data):  # otherwise a second reading would find nothing
                codes = _codes(data, columns, form)
        notes = [*notes, *columns.notes, *codes]
        columns = replace(columns, notes=tuple(notes), decimal=decimal)
        counts = write_columns(draft.path, columns)
        return MadeArtifact(
            draft.publish(counts, {"seconds": time.monotonic() - started}), made=True
        )


def _codes(data: bytes, columns: TableColumns, form: CsvForm) -> Iterator[str]:
    """Yield a note for each number feature that may be a code: Arrow reads 00037 as 37 and 0x1F as
    31."""
    features = columns.features.items()
    names = [
        name
        for name, column in features
        if pa.types.is_floating(column.type) and name not in columns.dates
    ]
    if not names:
        return
    texts = dict.fromkeys(names, pa.string())
    options = pyarrow.csv.ConvertOptions(include_columns=names, column_types=texts)
    written = read_csv(data, options, form, skip=True)  # as when the columns were read
    for name in names:
        row = pc.index(pc.match_substring_regex(written[name], _CODE), True).as_py()
        if row >= 0:
            yield (
                f"{name!r} is read as a number, but {written[name][row].as_py()!r} in row "
                f"{row + 1} looks like a code. To make it a category, prefix a letter (z00037)"
            )


def _columns(
    config: Config, typed: TypedColumns, rule: SplitRule, records: Records | None
) -> TableColumns:
    """Return the checked columns that the settings select."""
    path, table = config.path, typed.table
    names = table.column_names
    _check_selected(config, names)
    left = [name for name in names if name not in (config.target, *config.drop)]
    folds = [name for name in left if SPLIT_COLUMN.fullmatch(name) and name not in config.features]
    folds.sort(key=lambda name: int(name.partition("_")[2] or -1))
    if folds and config.split is not None:
        raise split_twice(path, folds[0])
    values, kept, notes = _target(config, table[config.target], records)
    target = target_column(path, config.target, values.filter(kept))
    features, dates = {}, {}
    for name in config.features or [name for name in left if name not in folds]:
        if reason := _unusable(name, names, table[name]):
            notes.append(f"{reason}, so it is skipped")
            continue
        if is_date(table[name].type):
            for part, values in date_parts(table[name].combine_chunks()).items():
                features[f"{name} ({part})"] = values.filter(kept)
                dates[f"{name} ({part})"] = name, part, typed.date_formats.get(name)
            continue
        column, note = feature_column(path, name, table[name])
        features[name] = column.filter(kept)
        notes += [note] if note else []
    assigned = {name: split_column(path, name, table[name]) for name in folds}
    if not folds:
        taken = {config.target, *features}
        candidates = chain(["split"], map("split_{}".format, count()))
        free = next(name for name in candidates if name not in taken)
        assigned = {free: pa.array(_splits(config, len(table), rule, records), pa.string())}
    assigned = {name: splits.filter(kept) for name, splits in assigned.items()}
    return TableColumns(
        where=path,
        target_name=config.target,
        target=target,
        features=features,
        assigned=assigned,
        notes=tuple(notes),
        dates=dates,
    )


def _check_selected(config: Config, names: Sequence[str]) -> None:
    """Raise UsageError if a column that the settings name does not exist, or DataError if two have
    the same name."""
    check_names(config.path, names)
    hint = ""
    if len(names) == 1 and config.path.endswith(CSV):
        hint = "The file has only one column: separate cells by commas, semicolons or tabs"
    for option, selected in (
        ("target", [config.target]),
        ("feature", config.features),
        ("column to --drop", config.drop),
    ):
        for name in selected:
            if name not in names:
                message = unknown(option, name, filter(None, names), hint)
                raise UsageError(f"{config.path}: {message}")


def _target(
    config: Config, column: "pa.ChunkedArray[Any]", records: Records | None
) -> "tuple[pa.ChunkedArray[Any], pa.Array[Any], list[str]]":
    """Return the target, a mask of the rows to keep, bool[n], and notes. All rows are kept, unless
    those without a usable target are skipped.

    If no target is usable, all rows are kept, so that :func:`target_column` reports the cause.
    """
    all_rows = pa.repeat(True, len(column))
    if config.on_error == "fail":
        return column, all_rows, []
    records = read_records(config.path, skip=True) if records is None else records
    usable = usable_targets(records, [config.target])
    if not pc.any(usable.kept).as_py():
        return column, all_rows, []
    numbers = target_literals(records, config.target).cast(pa.float64())
    notes = records.skipped.notes(usable.skipped, usable.kept.true_count)
    return pa.chunked_array([numbers]), usable.kept, notes


def _splits(config: Config, rows: int, rule: SplitRule, records: Records | None) -> list[str]:
    """Return the split of each row: by a hash of its row number, or by its value in a column."""
    if rule.by is None:
        return [rule.split_of(str(row)) for row in range(rows)]
    skip = config.on_error == "skip"
    return splits_of(read_records(config.path, skip=skip) if records is None else records, rule)


def _unusable(name: str, names: Sequence[str], column: "pa.ChunkedArray[Any]") -> str | None:
    """Return why a column cannot be a feature, if so."""
    if reason := index_reason(name, names.index(name)):
        return reason
    missing = column.null_count
    if pa.types.is_floating(column.type):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
    return f"{name!r} is empty" if missing == len(column) else None
