"""Predictions of table models for rows of text, whose features come from a frozen pretrained model.

The target of a row is written ``[?]``, marked in ``targets``, or absent.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import isfinite
from typing import NamedTuple

import msgspec
import numpy as np

from numtok.data.reading.json_lines import json_lines, row_decoder
from numtok.data.tables.text_features import NamedSpan, TextFeatures, without_name, without_targets
from numtok.encoding.holes import HOLE
from numtok.errors import DataError, UsageError, meaningless
from numtok.evaluation.conformal import Calibrated
from numtok.evaluation.devices import Note
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.table_rows import AskedFold, fold_of
from numtok.evaluation.text_rows import Query, RowPrediction, as_number
from numtok.evaluation.text_states import text_states
from numtok.models.pretrained.frozen import FrozenModel, FrozenSource
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.reports import QUANTILES
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.features import Features
from numtok.training.model_files import read_regressor
from numtok.training.model_json import TableModelFile

_ROWS = 1024  # rows per block


class FeatureQuery(NamedTuple):
    """Row of text for which a table model predicts the target.

    query
        The row, as for text models.
    read
        Text that the pretrained model reads, without the target.
    """

    query: Query
    read: str


class _MarkedRow(msgspec.Struct):
    """Fields of a JSON line that are used for predictions."""

    text: str
    predicted: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    targets: dict[str, list[tuple[int, int]]] | None = None


def predict_features(
    config: Config,
    model: Artifact,
    file: TableModelFile,
    recipe: TextFeatures,
    rows: Iterable[Query] | None,
    *,
    note: Note,
    calibrated: Calibrated | None = None,
) -> Iterator[tuple[Query, RowPrediction]]:
    """Yield each row with its prediction, in order. Rows are read in blocks.

    ``rows`` are the rows to predict; None for those that ``config`` names. Numbers have prediction
    intervals if ``calibrated`` is given. Raises UsageError for options that do not apply or if the
    pretrained model changed, DataError for invalid rows, and TrainingFailed if memory runs out.
    """
    _check_options(config)
    options, device = TableOptions.of(config), device_of(config.device)
    loaded = read_regressor(model, device, file)
    asked = AskedFold(options, loaded, fold_of(config, loaded)[0], calibrated)
    queries = _queries(config, recipe) if rows is None else (_query(row, recipe) for row in rows)
    block = list(islice(queries, _ROWS))  # invalid rows are reported before the model is loaded
    pretrained = _pretrained(config, recipe, model.ref)
    first = cut = 0
    while block:
        states = text_states(pretrained, [row.read for row in block], config.batch, note)
        features = Features(states.states.astype(np.float64), [])
        predicted = asked.predict((first, features), note)
        ends = 1 + len(QUANTILES)
        for row, value, quantiles, interval in zip(
            block,
            predicted[:, 0].tolist(),
            predicted[:, 1:ends],
            predicted[:, ends:].tolist(),
            strict=True,
        ):
            literal = f"{value:.{DIGITS_OF_FLOAT32}g}" if isfinite(value) else None
            yield (
                row.query,
                RowPrediction(
                    text=row.query.text.replace(HOLE, literal or HOLE),
                    numbers=[
                        as_number(literal, value, quantiles)
                        | ({"interval": interval} if interval else {})
                    ],
                ),
            )
        first, cut = first + len(block), cut + states.cut
        block = list(islice(queries, _ROWS))
    if cut:
        note(f"{cut:,} texts were cut, because they exceed the context of the pretrained model")


def _check_options(config: Config) -> None:
    kind = "a model that predicts from features of texts"
    if config.fill is not None:
        raise meaningless("fill", kind)
    if config.decode != "constrained":
        raise meaningless("decode", kind)
    if config.devices != "1":
        raise meaningless("devices", kind)


def _pretrained(config: Config, recipe: TextFeatures, ref: str) -> FrozenModel:
    """Load the pretrained model. Raises UsageError if it is not the one that made the features."""
    option = f"{ref} reads" if config.pretrained is None else "--pretrained"
    source = FrozenSource.of(config.pretrained or recipe.model, option)
    digest, _ = source.digest()
    if digest != recipe.sha256:
        raise UsageError(
            f"{config.pretrained or recipe.model} is not the model that made the features of {ref} "
            f"(sha256 {digest[:8]}, not {recipe.sha256[:8]}). Pass that model: --pretrained"
        )
    return source.load(recipe.pooling, device_of(config.device))


def _queries(config: Config, recipe: TextFeatures) -> Iterator[FeatureQuery]:
    """Yield the rows of the file, or the texts on the command line."""
    if config.text:
        for text in config.text:
            yield _query(Query.of_text(text), recipe)
        return
    field = recipe.text_field if config.text_field == "text" else config.text_field
    for where, line, row in json_lines(str(config.file), row_decoder(_MarkedRow, field)):
        if row.predicted is not msgspec.UNSET:
            raise DataError(
                f"{where}: 'predicted' is reserved for predictions, but the row has such a field. "
                "Rename it"
            )
        yield _query(Query(where, line, row.text), recipe, row.targets or {})


def _query(
    query: Query, recipe: TextFeatures, targets: dict[str, list[tuple[int, int]]] | None = None
) -> FeatureQuery:
    spans = [NamedSpan(*span, name) for name, each in (targets or {}).items() for span in each]
    for span in spans:
        if not 0 <= span.start <= span.end <= len(query.text):
            raise DataError(
                f"{query.where}: target {span.name!r} {list(span[:2])} is outside the text (length "
                f"{len(query.text)}). Correct it"
            )
    spans += _holes(query, recipe.target)
    if not spans:
        return FeatureQuery(query, without_name(query.text, recipe.target))
    return FeatureQuery(query, without_targets(query.text, spans, causal=recipe.causal))


def _holes(query: Query, target: str) -> Sequence[NamedSpan]:
    """Return the span of the hole in a text, if it has one."""
    if (count := query.text.count(HOLE)) > 1:
        raise DataError(f"{query.where}: the text has {count} {HOLE}. Write it only for the target")
    start = query.text.find(HOLE)
    return [] if start < 0 else [NamedSpan(start, start + len(HOLE), target)]
