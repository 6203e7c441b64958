"""Predictions of table models for rows of text, whose features come from a frozen pretrained model.

The target of a row is written ``[?]``, marked in ``targets``, or absent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isfinite
from typing import NamedTuple, Self

import numpy as np

from numtok.data.tables.text_features import NamedSpan, TextFeatures, without_name, without_targets
from numtok.encoding.holes import HOLE
from numtok.errors import DataError, UsageError
from numtok.evaluation.conformal import Calibrated
from numtok.evaluation.devices import Note
from numtok.evaluation.predicted_rows import GivenRow, given_rows
from numtok.evaluation.table_rows import AskedFold
from numtok.evaluation.text_rows import Query, RowPrediction, as_number
from numtok.evaluation.text_states import text_states
from numtok.models.pretrained.frozen import FrozenModel, FrozenSource
from numtok.names import counted
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.reports import QUANTILES
from numtok.setting_scope import refuse
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.features import Features
from numtok.training.model_json import TableModelFile

_ROWS = 1024  # rows per block


class FeatureQuery(NamedTuple):
    """Row of text for which a table model predicts the target.

    query
        The row, as for text models.
    read
        Text that the pretrained model reads, without the target.
    pieces
        The text around the target; a single piece if it is absent.
    """

    query: Query
    read: str
    pieces: Sequence[str]

    @classmethod
    def of(cls, query: Query, recipe: TextFeatures, spans: Sequence[NamedSpan] = ()) -> Self:
        """Build the query of a row, whose targets ``spans`` marks.

        Raises DataError if a span is outside the text, or if the text has several ``[?]``.
        """
        for span in spans:
            if not 0 <= span.start <= span.end <= len(query.text):
                raise DataError(
                    f"{query.where}: target {span.name!r} {list(span[:2])} is outside the text "
                    f"(length {len(query.text)}). Correct it"
                )
        spans = sorted({*spans, *_holes(query, recipe.target)})
        if not spans:
            return cls(query, without_name(query.text, recipe.target), [query.text])
        own = [span for span in spans if span.name == recipe.target]
        starts = [0, *(span.end for span in own)]
        ends = [*(span.start for span in own), len(query.text)]
        pieces = [query.text[first:last] for first, last in zip(starts, ends, strict=True)]
        return cls(query, without_targets(query.text, spans, causal=recipe.causal), pieces)


class FeaturePredictions(NamedTuple):
    """Predictions for rows, and the number of texts that exceed the pretrained model's context."""

    rows: list[RowPrediction]
    cut: int


class _MarkedRow(GivenRow):
    """Fields of a JSON line, with its targets as spans of the text."""

    targets: dict[str, list[tuple[int, int]]] | None = None


@dataclass(frozen=True)
class FeaturePredictor:
    """Predicts the target of rows of text with a loaded table model.

    The pretrained model is loaded when it is first used, after the first rows are checked.
    """

    config: Config
    recipe: TextFeatures
    fold: AskedFold

    @classmethod
    def of(
        cls,
        config: Config,
        model: Artifact,
        file: TableModelFile,
        recipe: TextFeatures,
        calibrated: Calibrated | None,
    ) -> Self:
        """Load the table model that ``file`` describes.

        Numbers have prediction intervals if ``calibrated`` is given. Raises UsageError for options
        that do not apply.
        """
        refuse(
            config, ("fill", "decode", "devices"), "a model that predicts from features of texts"
        )
        return cls(config, recipe, AskedFold.of(config, model, file, calibrated))

    @cached_property
    def _pretrained(self) -> FrozenModel:
        return _pretrained(self.config, self.recipe, self.fold.loaded.artifact.ref)

    def predict(
        self, rows: Sequence[FeatureQuery], note: Note, first: int = 0
    ) -> FeaturePredictions:
        """Predict rows; ``first`` is the index of the first one, which seeds samples.

        Raises UsageError if the pretrained model changed, and TrainingFailed if memory runs out.
        """
        states = text_states(self._pretrained, [row.read for row in rows], self.config.batch, note)
        features = Features(states.states.astype(np.float64), [])
        predicted = self.fold.predict((first, features), note)
        ends = 1 + len(QUANTILES)
        columns = predicted[:, 0].tolist(), predicted[:, 1:ends], predicted[:, ends:].tolist()
        predictions = []
        for row, value, quantiles, interval in zip(rows, *columns, strict=True):
            literal = f"{value:.{DIGITS_OF_FLOAT32}g}" if isfinite(value) else None
            number = as_number(literal, value, quantiles)
            number |= {"interval": interval} if interval else {}
            text = (literal or HOLE).join(row.pieces)
            predictions.append(RowPrediction(text=text, numbers=[number]))
        return FeaturePredictions(predictions, states.cut)


def predict_features(
    config: Config,
    model: Artifact,
    file: TableModelFile,
    recipe: TextFeatures,
    rows: Iterable[Query] | None,
    *,
    note: Note,
    calibrated: Calibrated | None,
) -> Iterator[tuple[Query, RowPrediction]]:
    """Yield each row with its prediction, in order. Rows are read in blocks.

    ``rows`` are the rows to predict; None for those that ``config`` names. Raises DataError for
    invalid rows, and the errors of :class:`FeaturePredictor`.
    """
    predictor = FeaturePredictor.of(config, model, file, recipe, calibrated)
    if rows is None:
        queries = _queries(config, recipe)
    else:
        queries = (FeatureQuery.of(row, recipe) for row in rows)
    first = cut = 0
    while block := list(islice(queries, _ROWS)):
        predicted = predictor.predict(block, note, first)
        yield from zip((row.query for row in block), predicted.rows, strict=True)
        first, cut = first + len(block), cut + predicted.cut
    if cut:
        note(f"Cut {counted(cut, 'text')} at the context of the pretrained model")


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
            yield FeatureQuery.of(Query.of_text(text), recipe)
        return
    field = config.text_field or recipe.text_field
    for where, line, row in given_rows(str(config.file), _MarkedRow, field):
        targets = (row.targets or {}).items()
        spans = [NamedSpan(*span, name) for name, each in targets for span in each]
        yield FeatureQuery.of(Query(where, line, row.text), recipe, spans)


def _holes(query: Query, target: str) -> Sequence[NamedSpan]:
    """Return the span of the hole in a text, if it has one."""
    if (count := query.text.count(HOLE)) > 1:
        raise DataError(f"{query.where}: the text has {count} {HOLE}. Write it only for the target")
    start = query.text.find(HOLE)
    return [] if start < 0 else [NamedSpan(start, start + len(HOLE), target)]
