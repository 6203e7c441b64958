"""Predictions of table models for the rows in a CSV or Parquet file. The file need not contain the
target."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Floats
from numtok.data.tables.columns import feature_column, first_word
from numtok.data.tables.file import check_format, check_names, csv_form, parsed, read_file
from numtok.errors import DataError, UsageError
from numtok.evaluation.devices import Note, devices
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.tables import AT_ONCE
from numtok.reports import QUANTILES, quantile_column
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.features import Features
from numtok.training.model_files import LoadedRegressor, read_regressor
from numtok.training.model_json import TableModelFile
from numtok.training.trained_table import FittedTable

PREDICTED = "predicted"
_SHOWN = 12  # maximum number of column names in a message
COLUMNS = (PREDICTED, *map(quantile_column, QUANTILES))


def predict_table(
    config: Config, model: Artifact, file: TableModelFile, note: Note
) -> Iterator[list[str]]:
    """Yield CSV records: the header, then each row of the file, unchanged, with :data:`COLUMNS`
    appended.

    ``file`` describes the model. Raises UsageError for invalid options or missing feature columns,
    DataError for invalid data, and StoreError for a damaged model.
    """
    path = str(config.file)
    if path == "-":
        raise UsageError("tables cannot be read from standard input. Pass a CSV or Parquet file")
    check_format(path)
    options, device = TableOptions.of(config), device_of(config.device)
    loaded = read_regressor(model, device, file)
    fold, fitted = fold_of(config, loaded)
    data = read_file(Path(path))
    words = [
        feature.name for feature in loaded.file.settings.features if feature.kind == "category"
    ]
    table = parsed(path, data, words)
    columns = _features(path, table, loaded, fitted)
    records = _records(path, data, table)
    header = next(records)
    for name in COLUMNS:
        if name in header:
            raise UsageError(
                f"{path} has a column {name!r}, a name reserved for predictions. Rename it"
            )
    with devices(config.devices, device) as these:
        model_of_fold = AskedFold(options, loaded, fold)
        blocks = these.each(model_of_fold, AskedFold.predict, _blocks(columns), note)
        begun = list(islice(blocks, 1))  # errors occur before anything is written
        yield [*header, *COLUMNS]
        for predictions in chain(begun, blocks):
            for values, record in zip(
                predictions.tolist(), islice(records, len(predictions)), strict=True
            ):
                yield [*record, *(repr(value) if np.isfinite(value) else "" for value in values)]


@dataclass(frozen=True)
class AskedFold:
    """Model of one fold, with its decoding options."""

    options: TableOptions
    loaded: LoadedRegressor
    fold: int

    def predict(self, block: tuple[int, Features], note: Note) -> Floats:
        """Return point predictions and quantiles, float64[rows, 1 + quantiles], for a block of
        rows: the index of its first row and its features."""
        first, columns = block
        fitted = self.loaded.fitted[self.fold]
        exact = fitted.predictive(columns)
        used = self.options.distribution(exact, self.loaded.artifact.ref, self.fold, first)
        values = self.options.values(used, len(columns.numbers), fitted.learnt_from)
        return np.column_stack([values, self.options.quantiles(used)])


def _blocks(columns: Features) -> Iterator[tuple[int, Features]]:
    for first in range(0, len(columns.numbers), AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, len(columns.numbers)))
        yield first, columns.take(rows)


def fold_of(config: Config, loaded: LoadedRegressor) -> tuple[int, FittedTable]:
    """Return the fold whose model predicts, and that model.

    Raises UsageError if ``--fold`` is missing or unknown.
    """
    ref, folds = loaded.artifact.ref, list(loaded.fitted)
    fold = folds[0] if config.fold is None and len(folds) == 1 else config.fold
    if fold not in loaded.fitted:
        available = ", ".join(map(str, folds))
        problem = f"has {len(folds)} models" if fold is None else f"has no fold {fold}"
        raise UsageError(f"{ref} {problem}. Pass --fold K; available: {available}")
    assert fold is not None
    return fold, loaded.fitted[fold]


def _features(
    path: str, table: "pa.Table", loaded: LoadedRegressor, fitted: FittedTable
) -> Features:
    """Return the features of a file, with the order and types that the model expects."""
    wanted, present = loaded.file.settings.features, table.column_names
    check_names(path, present)
    if lacking := [feature.name for feature in wanted if feature.name not in present]:
        commas = ". Are fields separated by commas or semicolons?" if len(present) == 1 else ""
        raise UsageError(
            f"{path} has no column {_listed(lacking)} (it has {_listed(present)}){commas}. "
            f"{loaded.artifact.ref} needs "
            f"{', '.join(f'{feature.name} ({feature.kind})' for feature in wanted)}"
        )
    numbers = [_number(path, feature.name, table) for feature in wanted if feature.kind == "number"]
    categories = [feature.name for feature in wanted if feature.kind == "category"]
    return Features(
        np.column_stack(numbers) if numbers else np.empty((len(table), 0)),
        [
            _category(path, name, table, values)
            for name, values in zip(categories, fitted.inputs.values, strict=True)
        ],
    )


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*map(repr, names[:_SHOWN]), *more])


def _number(path: str, name: str, table: "pa.Table") -> Floats:
    """Return a numeric feature. Strings are parsed; empty strings are missing values."""
    column = table[name]
    if pa.types.is_null(column.type):
        return np.full(len(table), np.nan)
    values, _ = feature_column(path, name, column, may_drop=False)
    if pa.types.is_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        words = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
        if (row := first_word(words)) is not None:
            raise DataError(
                f"{path}: row {row + 1}: feature {name!r} must be a number "
                f"(got {words[row].as_py()!r}). Correct it, or leave it empty"
            )
        read = pa.chunked_array([words.cast(pa.float64())])
        values, _ = feature_column(path, name, read, may_drop=False)
    numbers: Floats = values.fill_null(float("nan")).to_numpy()
    return numbers


def _category(
    path: str, name: str, table: "pa.Table", trained_words: Sequence[str]
) -> "pa.Array[Any]":
    """Return a categorical feature in the spelling of the training data.

    A column is read as booleans only if all its values are, so ``True`` may appear as ``true``.
    """
    column = table[name]
    is_word = pa.types.is_boolean(column.type) or pa.types.is_dictionary(column.type)
    if not is_word:
        with suppress(pa.ArrowException):  # feature_column rejects other types
            column = column.cast(pa.string())
    words, _ = feature_column(path, name, column, may_drop=False)
    spelt = {word.lower(): word for word in trained_words if word.lower() in ("true", "false")}
    distinct = set(pc.unique(words).to_pylist()) - {None}
    other = {
        word: spelt[word.lower()] for word in distinct - set(trained_words) if word.lower() in spelt
    }
    for word, same in other.items():
        words = pc.if_else(pc.equal(words, word), same, words)
    return words


def _records(path: str, data: bytes, table: "pa.Table") -> Iterator[list[str]]:
    """Yield the header and the rows as CSV fields."""
    if path.endswith(".csv"):
        csv.field_size_limit(max(csv.field_size_limit(), len(data) + 1))
        text = data.decode("utf-8-sig", "surrogateescape")
        lines = io.StringIO(text, newline="")
        yield from filter(None, csv.reader(lines, delimiter=csv_form(data).separator))
        return
    columns = [_written(path, name, table[name]) for name in table.column_names]
    yield list(table.column_names)
    for row in zip(*columns, strict=True):
        yield ["" if value is None else str(value) for value in row]


def _written(path: str, name: str, column: "pa.ChunkedArray[Any]") -> list[Any]:
    with suppress(pa.ArrowException):  # such as lists
        column = column.cast(pa.string())
    try:
        return list(column.to_pylist())
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise DataError(
            f"{path}: column {name!r} cannot be written as text ({error}). Remove it"
        ) from error


def outgoing_record(record: list[str]) -> bytes:
    """Return a record as a line of CSV, in bytes.

    >>> outgoing_record(["7", "a, b", "1.5"])
    b'7,"a, b",1.5\\n'
    """
    line = io.StringIO()
    csv.writer(line).writerow(record)  # lines end in \r\n: otherwise \r would not be quoted
    return line.getvalue().removesuffix("\r\n").encode("utf-8", "surrogateescape") + b"\n"
