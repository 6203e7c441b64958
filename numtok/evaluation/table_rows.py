"""Predictions of table models for the rows in a CSV or Parquet file. The file need not contain the
target."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Floats
from numtok.data.reading.sources import CSV
from numtok.data.records.dates import date_format, dates_of
from numtok.data.records.notation import notation_of
from numtok.data.records.reader import FORMATS, JSON_LINES, read_records
from numtok.data.records.typed import date_parts, is_date
from numtok.data.tables.columns import feature_column, first_word, plain_strings
from numtok.data.tables.file import check_format, check_names, csv_form, parsed, read_file
from numtok.data.tables.table import Feature, decimal_of
from numtok.errors import DataError, UsageError
from numtok.evaluation.conformal import Calibrated, Forecasts
from numtok.evaluation.devices import Note, devices
from numtok.evaluation.intervals import ENDS, of_fold
from numtok.evaluation.predicted_rows import COLUMNS, RowNumbers, with_predictions
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.tables import AT_ONCE
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.features import Features
from numtok.training.model_files import LoadedRegressor, read_regressor
from numtok.training.model_json import TableModelFile

_SHOWN = 12  # maximum number of column names in a message


def predict_table(
    config: Config,
    model: Artifact,
    file: TableModelFile,
    note: Note,
    *,
    calibrated: Calibrated | None,
) -> Iterator[bytes]:
    """Yield the lines of the output (:func:`with_predictions`) for the rows of a file, with the
    ends of prediction intervals if ``calibrated`` is given.

    ``file`` describes the model. Raises UsageError for invalid options or missing feature columns,
    DataError for invalid data, and StoreError for a damaged model.
    """
    path = str(config.file)
    asked = AskedFold.of(config, model, file, calibrated)
    target, features = file.settings.target, file.settings.features
    values = asked.loaded.fitted[asked.fold].inputs.values
    columns = read_features(path, features, values, model.ref)
    added = COLUMNS if calibrated is None else (*COLUMNS, *ENDS)

    def predictions(blocks: Iterator[Floats]) -> Iterator[RowNumbers]:
        for block in blocks:
            for values in block.tolist():
                yield {target: dict(zip(added, values, strict=True))}

    with devices(config.devices, device_of(config.device)) as these:
        blocks = these.each(asked, AskedFold.predict, _blocks(columns), note)
        numbers, decimal = predictions(iter(blocks)), decimal_of(features)
        yield from with_predictions(path, [target], added, numbers, decimal=decimal)


@dataclass(frozen=True)
class AskedFold:
    """Model of one fold, with its decoding options."""

    options: TableOptions
    loaded: LoadedRegressor
    fold: int
    calibrated: Calibrated | None

    @classmethod
    def of(
        cls, config: Config, model: Artifact, file: TableModelFile, calibrated: Calibrated | None
    ) -> Self:
        """Load the table model that ``file`` describes. Raises UsageError for options that do not
        apply."""
        options = TableOptions.of(config)
        loaded = read_regressor(model, device_of(config.device), file)
        return cls(options, loaded, fold_of(config, model.ref, list(loaded.fitted)), calibrated)

    def predict(self, block: tuple[int, Features], note: Note) -> Floats:
        """Return point predictions, quantiles and the ends of intervals, if any, as float64[rows,
        columns], for a block of rows: the index of its first row and its features."""
        first, columns = block
        fitted = self.loaded.fitted[self.fold]
        exact = fitted.predictive(columns)
        used = self.options.distribution(exact, self.loaded.artifact.ref, self.fold, first)
        values = self.options.values(used, len(columns.numbers), fitted.learnt_from)
        quantiles = self.options.quantiles(used)
        predictions = [values, quantiles]
        if self.calibrated is not None:
            point = np.where(np.isfinite(values), values, fitted.learnt_from.mean)
            target = self.loaded.file.settings.target
            names = [target] if len(self.loaded.fitted) == 1 else [of_fold(target, self.fold)]
            strata = np.array(names * len(values), object)
            predicted = Forecasts(point=point, quantiles=quantiles, strata=strata)
            predictions += self.calibrated.intervals(predicted)
        return np.column_stack(predictions)


def _blocks(columns: Features) -> Iterator[tuple[int, Features]]:
    for first in range(0, len(columns.numbers), AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, len(columns.numbers)))
        yield first, columns.take(rows)


def fold_of(config: Config, ref: str, folds: Sequence[int]) -> int:
    """Return the fold whose fit predicts: ``config.fold``, or the only one of ``folds``.

    Raises UsageError if ``--fold`` is missing or unknown. ``ref`` is the artifact with the folds.
    """
    fold = folds[0] if config.fold is None and len(folds) == 1 else config.fold
    if fold not in folds:
        available = ", ".join(map(str, folds))
        problem = f"has {len(folds)} folds" if fold is None else f"has no fold {fold}"
        raise UsageError(f"{ref} {problem}. Pass --fold K; available: {available}")
    assert fold is not None
    return fold


def read_features(
    path: str, wanted: Sequence[Feature], values: Sequence[Sequence[str]], ref: str
) -> Features:
    """Read the feature columns of a CSV, Parquet or JSON Lines file, in the order and with the
    types of the features ``wanted``.

    ``values`` are the known values of each category feature, and ``ref`` is the artifact that needs
    the features. Raises UsageError if a column is missing, and DataError for invalid data.
    """
    if path == "-":
        raise UsageError("tables cannot be read from standard input. Pass a file")
    check_format(path, FORMATS)
    categories = [feature.name for feature in wanted if feature.kind == "category"]
    decimal = "."
    if path.endswith(JSON_LINES):
        table = read_records(path).table
    else:  # words in columns of categories, else the types of the file
        data, trained = read_file(Path(path)), decimal_of(wanted)
        table = parsed(path, data, categories, decimal=trained)
        if path.endswith(CSV):
            decimal = csv_form(data, trained).decimal
    present = table.column_names
    check_names(path, present)
    names = [feature.date or feature.name for feature in wanted]
    if lacking := [name for name in dict.fromkeys(names) if name not in present]:
        is_csv = len(present) == 1 and path.endswith(CSV)
        commas = ". Are fields separated by commas, semicolons or tabs?" if is_csv else ""
        raise UsageError(
            f"{path} has no column {listed(lacking)} (it has {listed(present)}){commas}. "
            f"{ref} needs {', '.join(f'{feature.name} ({feature.kind})' for feature in wanted)}"
        )
    numbers = [
        _number(path, feature, table, decimal) for feature in wanted if feature.kind == "number"
    ]
    return Features(
        np.column_stack(numbers) if numbers else np.empty((len(table), 0)),
        [
            _category(path, name, table, known)
            for name, known in zip(categories, values, strict=True)
        ],
    )


def listed(names: Sequence[str]) -> str:
    """Return quoted names for a message, at most 12 of them."""
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*map(repr, names[:_SHOWN]), *more])


def _number(path: str, feature: Feature, table: pa.Table, decimal: str) -> Floats:
    """Return a numeric feature. Strings are parsed; empty strings are missing values. ``decimal``
    is the decimal mark of the file."""
    if feature.date is not None:
        return _date_part(path, feature, table[feature.date])
    name = feature.name
    column = table[name]
    if pa.types.is_null(column.type):
        return np.full(len(table), np.nan)
    values, _ = feature_column(path, name, column, may_drop=False)
    if pa.types.is_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        words = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
        notation = notation_of(words, decimal)
        words = words if notation is None else notation.plain(words)
        if (row := first_word(words)) is not None:
            raise DataError(
                f"{path}: row {row + 1}: feature {name!r} must be a number "
                f"(got {words[row].as_py()!r}). Correct it, or leave it empty"
            )
        read = pa.chunked_array([words.cast(pa.float64())])
        values, _ = feature_column(path, name, read, may_drop=False)
    numbers: Floats = values.fill_null(float("nan")).to_numpy()
    return numbers


def _date_part(path: str, feature: Feature, column: "pa.ChunkedArray[Any]") -> Floats:
    """Return a part of a date."""
    name = str(feature.date)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    dates = column.combine_chunks()
    if not is_date(column.type):
        dates = dates.cast(pa.string())
        form = date_format(dates, like=feature.date_format)
        if form is None:
            raise DataError(f"{path}: column {name!r} must have dates, such as 2024-01-31")
        dates = dates_of(dates, form)
    part = date_parts(dates)[str(feature.part)]
    values: Floats = part.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return values


def _category(
    path: str, name: str, table: pa.Table, trained_words: Sequence[str]
) -> "pa.Array[Any]":
    """Return a categorical feature in the spelling of the training data.

    A column is read as booleans only if all its values are, so ``True`` may appear as ``true``. The
    numbers of a typed column have no spelling, so ``1.0`` may appear as ``1``.
    """
    column = plain_strings(table[name])
    is_typed = not pa.types.is_boolean(column.type) and not pa.types.is_string(column.type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if is_typed:
        with suppress(pa.ArrowException):  # feature_column rejects other types
            column = column.cast(pa.string())
    words, _ = feature_column(path, name, column, may_drop=False)
    value_of = _number_of if is_typed else _truth_of
    spellings = {value_of(word): word for word in trained_words}
    spellings.pop(None, None)
    known, encoded = set(trained_words), words.dictionary_encode()
    spelt = [
        word if word in known else spellings.get(value_of(word), word)
        for word in encoded.dictionary.to_pylist()
    ]
    return pa.array(spelt, pa.string()).take(encoded.indices)


def _truth_of(word: str) -> bool | None:
    return {"true": True, "false": False}.get(word.lower())


def _number_of(word: str) -> Decimal | None:
    with suppress(InvalidOperation):
        number = Decimal(word)
        return number if number.is_finite() else None
    return None
