"""Predict-table: a model of tables, and a file of rows without the target -> the rows with it.

As ``predict`` does for texts: nothing is measured and no artifact is made.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from numtok.errors import DataError, UsageError
from numtok.nn.features import Columns
from numtok.nn.fitted import Fitted
from numtok.nn.training import device_of
from numtok.records import MODEL
from numtok.reports import QUANTILES, quantile_column
from numtok.stages._regressors import LoadedRegressor, read_regressor
from numtok.stages._table import feature_column, first_word
from numtok.stages._table_file import check_format, check_names, parsed, read_csv, read_file
from numtok.stages._table_predictions import AT_ONCE, TableOptions
from numtok.store import Store
from numtok.tables import Feature

PREDICTED = "predicted"
COLUMNS = (PREDICTED, *map(quantile_column, QUANTILES))


@dataclass(frozen=True)
class Config:
    """What ``numtok predict`` was asked for.

    path
        A CSV or Parquet file with the features that the model learnt, among whatever else.
    fold
        Whose model of several predicts; None: there is one alone.
    """

    model: str
    path: str
    fold: int | None = None
    options: TableOptions = field(default_factory=TableOptions)
    device: str = "auto"

    def __post_init__(self) -> None:
        check_format(self.path)


def run(config: Config, store: Store) -> Iterator[list[str]]:
    """The records of a CSV: a header, and each row as it was with :data:`COLUMNS` behind it.

    Raises UsageError (also for features that the file has not), DataError, StoreError.
    """
    model = store.resolve(config.model, kinds={MODEL})
    loaded = read_regressor(model, device_of(config.device))
    fold, fitted = _fold(config, loaded)
    data = read_file(Path(config.path))
    table = parsed(config.path, data)
    columns = _features(config.path, data, table, loaded)
    records = _records(config.path, data, table)
    header = next(records)
    for name in COLUMNS:
        if name in header:
            raise UsageError(
                f"{config.path} has a column {name!r}, which predictions are called; rename it"
            )
    yield [*header, *COLUMNS]
    for first in range(0, len(columns.numbers), AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, len(columns.numbers)))
        used = config.options.used(
            fitted.predictive(columns.take(rows)), loaded.artifact.ref, fold, first
        )
        values = config.options.values(used, len(rows), fitted.learnt_from)
        made = np.column_stack([values, used.quantiles(QUANTILES)])
        for said, record in zip(made.tolist(), islice(records, len(made)), strict=True):
            yield [*record, *(repr(value) if np.isfinite(value) else "" for value in said)]


def _fold(config: Config, loaded: LoadedRegressor) -> tuple[int, Fitted]:
    ref, folds = loaded.artifact.ref, list(loaded.fitted)
    fold = folds[0] if config.fold is None and len(folds) == 1 else config.fold
    if fold not in loaded.fitted:
        told = "are " + ", ".join(map(str, folds)) if len(folds) > 1 else f"is {folds[0]}"
        what = f"has {len(folds)} models" if fold is None else f"has no fold {fold}"
        raise UsageError(f"{ref} {what}; give --fold K, of which there {told}")
    assert fold is not None
    return fold, loaded.fitted[fold]


def _features(path: str, data: bytes, table: "pa.Table", loaded: LoadedRegressor) -> Columns:
    """The features of a file, in the model's order and of its kinds."""
    wanted = loaded.file.features
    check_names(path, table.column_names)
    lacking = [repr(one.name) for one in wanted if one.name not in table.column_names]
    if lacking:
        raise UsageError(
            f"{path} has no column {', '.join(lacking)}; {loaded.artifact.ref} was fitted to "
            f"{', '.join(f'{one.name} ({one.kind})' for one in wanted)}; give a file with these"
        )
    numbers: list[NDArray[np.float64]] = []
    categories: list[pa.Array[Any]] = []
    for one in wanted:
        if one.kind == "number":
            numbers.append(_number(path, one, table))
        else:
            categories.append(_category(path, one, data, table))
    stacked = np.column_stack(numbers) if numbers else np.empty((len(table), 0))
    return Columns(stacked, categories)


def _number(path: str, feature: Feature, table: "pa.Table") -> NDArray[np.float64]:
    if pa.types.is_null(table[feature.name].type):
        return np.full(len(table), np.nan)
    column, _ = feature_column(path, feature.name, table[feature.name])
    if pa.types.is_string(column.type):
        if (row := first_word(column)) is not None:
            raise DataError(
                f"{path}: the feature {feature.name!r} is {column[row].as_py()!r} in row "
                f"{row + 1}, and was a number for the model; correct it, or leave the field empty"
            )
        column = pc.utf8_trim_whitespace(column).cast(pa.float64())
    values: NDArray[np.float64] = column.fill_null(float("nan")).to_numpy()
    return values


def _category(path: str, feature: Feature, data: bytes, table: "pa.Table") -> "pa.Array[Any]":
    """Words that look like numbers here are words still."""
    name, column = feature.name, table[feature.name]
    if pa.types.is_null(column.type):
        return pa.nulls(len(table), pa.string())
    words, _ = feature_column(path, name, column)
    if pa.types.is_string(words.type):
        return words
    if path.endswith(".csv"):
        only = pyarrow.csv.ConvertOptions(
            strings_can_be_null=True, include_columns=[name], column_types={name: pa.string()}
        )
        return read_csv(data, only)[name].combine_chunks()
    return column.cast(pa.string()).combine_chunks()


def _records(path: str, data: bytes, table: "pa.Table") -> Iterator[list[str]]:
    """The header and the rows, as they are written in a CSV."""
    if path.endswith(".csv"):
        text = data.decode("utf-8-sig", "surrogateescape")
        yield from filter(None, csv.reader(io.StringIO(text, newline="")))
        return
    yield list(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield ["" if value is None else str(value) for value in row]


def outgoing(record: list[str]) -> bytes:
    """A record as a line of CSV.

    >>> outgoing(["7", "a, b", "1.5"])
    b'7,"a, b",1.5\\n'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(record)
    return line.getvalue().encode("utf-8", "surrogateescape")
