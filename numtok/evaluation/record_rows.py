"""Predictions of text models for the records of a file, whose rows were rendered for training."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from numtok.data.reading.json_lines import json_lines
from numtok.data.records.reader import JSON_LINES, Records, read_records
from numtok.data.records.template import RowTemplate
from numtok.data.tables.file import parsed, read_file
from numtok.encoding.holes import HOLE
from numtok.errors import UsageError
from numtok.evaluation.csv_rows import csv_records, outgoing_record
from numtok.evaluation.devices import Note
from numtok.evaluation.table_rows import COLUMNS, PREDICTED
from numtok.evaluation.text_rows import Query, RowPrediction, predict_texts
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.model_json import TextModelFile


def predict_records(
    config: Config, model: Artifact, file: TextModelFile, template: RowTemplate, note: Note
) -> Iterator[bytes]:
    """Yield the lines of the output: CSV for a CSV or Parquet file, with :data:`COLUMNS` appended;
    for JSON Lines each row with a field ``predicted``, which maps targets to predictions.

    With several targets, the names of the columns end in ``_TARGET``. Raises UsageError if a field
    of the template is missing or a name is reserved, and the same errors as :func:`predict_texts`.
    """
    path = str(config.file)
    records = read_records(path)
    queries = _queries(records, template)
    predictions = (
        _of_targets(prediction, template.targets)
        for _, prediction in predict_texts(config, model, file, queries, note)
    )
    if path.endswith(JSON_LINES):
        yield from _json_rows(path, records, predictions)
    else:
        yield from _csv_rows(path, template.targets, predictions)


def _queries(records: Records, template: RowTemplate) -> Iterator[Query]:
    columns = [prompt.to_pylist() for prompt in template.prompts(records)]
    for row, pieces in enumerate(zip(*columns, strict=True)):
        text = HOLE.join([*pieces, ""])
        yield Query(records.where(row), b"", text, pieces=[*pieces, ""])


def _of_targets(prediction: RowPrediction, targets: Sequence[str]) -> dict[str, dict[str, Any]]:
    return dict(zip(targets, prediction.numbers or (), strict=True))


def _json_rows(
    path: str, records: Records, predictions: Iterator[dict[str, dict[str, Any]]]
) -> Iterator[bytes]:
    if PREDICTED in records.names:
        raise UsageError(f"{path} has a field {PREDICTED!r}, a name reserved for predictions")
    lines = json_lines(path, msgspec.json.Decoder(msgspec.Raw))
    for (_, line, _), numbers in zip(lines, predictions, strict=True):
        inner = line.rstrip()[:-1].rstrip()
        comma = b"" if inner.endswith(b"{") else b","
        yield inner + comma + b'"predicted":' + msgspec.json.encode(numbers) + b"}\n"


def _csv_rows(
    path: str, targets: Sequence[str], predictions: Iterator[dict[str, dict[str, Any]]]
) -> Iterator[bytes]:
    data = read_file(Path(path))
    table: pa.Table = parsed(path, data)
    rows = csv_records(path, data, table)
    header = next(rows)
    endings = [f"_{target}" for target in targets] if len(targets) > 1 else [""]
    added = [name + ending for ending in endings for name in COLUMNS]
    for name in added:
        if name in header:
            raise UsageError(
                f"{path} has a column {name!r}, a name reserved for predictions. Rename it"
            )
    first = list(next(predictions, {}).items())
    yield outgoing_record([*header, *added])
    for row, numbers in zip(rows, chain([dict(first)], predictions), strict=True):
        yield outgoing_record([*row, *chain.from_iterable(map(_cells, numbers.values()))])


def _cells(number: dict[str, Any]) -> list[str]:
    """Return the cells of one prediction; a missing value is empty."""
    values = [number["value"], *(number.get(name) for name in COLUMNS[1:])]
    return ["" if value is None else repr(value) for value in values]
