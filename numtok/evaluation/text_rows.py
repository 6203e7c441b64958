"""Predictions of text models for rows of text with unknown numbers.

``[?]`` marks a number to predict. A masked model fills in all of a row's numbers together. An
autoregressive model predicts each from the text before it, including its own earlier predictions;
with ``--fill answers`` it continues the text instead. A classifier predicts the label of each row.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import torch

from numtok.arrays import Floats, Int32s
from numtok.data.records.reader import records_of
from numtok.data.records.row_template import RowTemplate
from numtok.data.records.template import prompts_of
from numtok.data.tables.file import FORMATS
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.holes import HOLE, filled, hole_numbers
from numtok.encoding.in_memory import rows_of
from numtok.encoding.normalizers.base import splits_answers
from numtok.encoding.schemes.base import LOSSES, ChannelScheme
from numtok.encoding.texts import Texts
from numtok.errors import DataError, UsageError, file_not_found
from numtok.evaluation.answers import AnswerOptions, AnswerReader
from numtok.evaluation.conformal import Calibrated, Forecasts
from numtok.evaluation.devices import ONE, Note, devices
from numtok.evaluation.labels import LabelOptions, LabelReader
from numtok.evaluation.numbers import target_calibrations
from numtok.evaluation.predict import Options, Predictor
from numtok.evaluation.predicted_rows import GivenRow, given_rows
from numtok.evaluation.prediction_mode import Mode, prediction_mode
from numtok.models.heads.base import Calibration
from numtok.names import counted
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.registry import spec_of
from numtok.reports import QUANTILES, quantile_column
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact, Find
from numtok.training.device import device_of
from numtok.training.model_files import AskedModel, check_reads, read_model
from numtok.training.model_json import TextModelFile

_ROWS = 1024  # rows per block
_SHOWN = 40  # maximum number of characters of a text in a message


class Query(NamedTuple):
    """Row of text for which numbers, a label or an answer are predicted.

    where
        Location of the row, for messages.
    line
        The row as a line of JSON.
    text
        Text of the row, in which ``[?]`` marks numbers to predict.
    answer_start
        Position in code points at which the model continues the text; None for the end of the text.
    pieces
        The text around the numbers to predict; None to split the text at each ``[?]``.
    targets
        Names of the numbers to predict, if known.
    """

    where: str
    line: bytes
    text: str
    answer_start: int | None = None
    pieces: Sequence[str] | None = None
    targets: Sequence[str] = ()

    @classmethod
    def of_text(cls, text: str) -> "Query":
        """Build a query from a text. Raises UsageError if the text is not valid Unicode."""
        try:
            line = msgspec.json.encode({"text": text})
        except UnicodeEncodeError:
            raise UsageError(f"--text must be UTF-8 (got {text!r})") from None
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
        return cls(repr(shown), line, text)


class RowPrediction(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Prediction for one row. Only the fields that belong to the prediction mode are set.

    text
        Text of the row, with valid numbers filled in.
    numbers
        One mapping per number: ``literal`` and ``value``, both null if the output is not a number,
        the quantiles of the predictive distribution if there is one, and the calibrated
        ``interval``, a list of its ends, if a level is set. An infinite end is null.
    label, probability
        Most probable label and its probability.
    answer, ended
        Text that the model wrote, and whether the model ended it before the token limit.
    """

    text: str | None = None
    numbers: list[dict[str, Any]] | None = None
    label: str | None = None
    probability: float | None = None
    answer: str | None = None
    ended: bool | None = None


def read_rows(path: str, text_field: str = "text") -> Iterator[Query]:
    """Yield the rows of a JSONL file, plain or compressed, or of standard input if ``path`` is
    ``-``.

    ``text_field`` is the name of the field that contains the text. Raises UsageError if the file is
    not found, and DataError if a line is invalid.
    """
    if path.endswith(FORMATS):
        if not Path(path).exists():
            raise file_not_found(path)
        raise UsageError(f"{path} is a table, but the model is a text model. Pass JSONL with texts")
    for given in given_rows(path, _TextRow, text_field):
        yield _query(*given)


def of_field(row: Query, template: RowTemplate | None) -> Query:
    """Render a text without ``[?]`` as the only field of a record, if ``template`` has one field.
    Other rows are returned unchanged."""
    if template is None or not template.bare or row.pieces is not None or HOLE in row.text:
        return row
    field = pa.table({template.fields[0]: pa.array([row.text], pa.string())})
    prompts = prompts_of(template, records_of(field, row.where))
    pieces = [prompt[0].as_py() for prompt in prompts]
    return row._replace(pieces=[*pieces, ""], targets=template.targets)


def predict_texts(
    config: Config,
    model: Artifact,
    file: TextModelFile,
    rows: Iterable[Query],
    note: Note,
    *,
    find: Find,
    calibrated: Calibrated | None = None,
) -> Iterator[tuple[Query, RowPrediction]]:
    """Yield each row with its prediction, in order. Rows are read in blocks.

    ``file`` describes the model, and ``find`` looks up the data that it was trained on. Numbers
    have prediction intervals if ``calibrated`` is given.
    Raises UsageError for options that do not apply to the model,
    DataError for rows that cannot be predicted (see :meth:`TextPredictor.predict`), and
    TrainingFailed if memory runs out.
    """
    device = device_of(config.device)
    with devices(config.devices, device) as these:
        predictor = TextPredictor.of(config, model, file, device, find=find, calibrated=calibrated)
        waiting: deque[list[Query]] = deque()

        def blocks() -> Iterator[list[Query]]:
            remaining = iter(rows)
            while block := list(islice(remaining, _ROWS)):
                waiting.append(block)
                yield block

        for predictions in these.each(predictor, TextPredictor.predict, blocks(), note):
            yield from zip(waiting.popleft(), predictions, strict=True)


def outgoing(row: Query, prediction: RowPrediction) -> bytes:
    """Return the row's JSON line with ``predicted`` appended as the last field.

    >>> outgoing(Query.of_text("it is [?]"), RowPrediction(text="it is 7"))
    b'{"text":"it is [?]","predicted":{"text":"it is 7"}}\\n'
    """
    return row.line[:-1] + b',"predicted":' + msgspec.json.encode(prediction) + b"}\n"


def _check_length_is_known(loaded: AskedModel) -> None:
    scheme = loaded.codec.scheme
    if scheme.tokens_per_number is None:
        raise UsageError(
            f"{loaded.ref} cannot predict unknown numbers: it is masked, and the number of masks "
            f"is not known because numbers vary in length with {spec_of(scheme)}. Use an "
            "autoregressive model (--objective ar) or a scheme with numbers of fixed length"
        )


class _TextRow(GivenRow):
    """Row for a text model."""

    answer_start: int | None = None


def _query(where: str, line: bytes, row: _TextRow) -> Query:
    if row.answer_start is not None and not 0 <= row.answer_start <= len(row.text):
        raise DataError(
            f"{where}: answer_start must be within the text of {len(row.text)} characters (got "
            f"{row.answer_start})"
        )
    return Query(where, line, row.text, row.answer_start)


def _answer_start(row: Query, pieces: Sequence[str]) -> int:
    """Return the position at which the answer of a row begins: at its first hole, or earlier if the
    row says so."""
    first = len(pieces[0])
    return first if row.answer_start is None else min(first, row.answer_start)


@dataclass
class _Draft:
    """Row whose holes (``[?]``) are filled one after another."""

    row: Query
    pieces: list[str]  # the text around its holes: one more than there are holes
    predicted: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, row: Query) -> "_Draft":
        pieces = list(row.pieces or row.text.split(HOLE))
        if len(pieces) == 1:
            raise DataError(
                f"{row.where}: the text has no {HOLE}. Write {HOLE} for each number to predict, or "
                "let an autoregressive model continue the text: --fill answers"
            )
        return cls(row._replace(answer_start=_answer_start(row, pieces)), pieces)

    @property
    def before(self) -> str:
        """Text before the next hole, or the whole text; invalid numbers remain holes."""
        literals = [number["literal"] or HOLE for number in self.predicted]
        pairs = zip(self.pieces, [*literals, ""], strict=False)
        return "".join(piece + literal for piece, literal in pairs)

    def names(self) -> list[str | None]:
        """Return the target of each hole that is left; None if unknown."""
        done, holes = len(self.predicted), len(self.pieces) - 1
        return list(self.row.targets[done:]) or [None] * (holes - done)

    @property
    def can_continue(self) -> bool:
        """True if there is a next hole and all earlier ones are filled with valid numbers."""
        is_left = len(self.predicted) < len(self.pieces) - 1
        return is_left and all(number["literal"] is not None for number in self.predicted)


_NOTHING = {"literal": None, "value": None}


@dataclass(frozen=True)
class TextPredictor:
    """Predicts numbers, labels or answers for rows of text with a loaded model.

    ``calibrated`` computes the prediction intervals of numbers; None for predictions without them.
    """

    loaded: AskedModel
    mode: Mode
    calibrated: Calibrated | None = None
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError for a masked model whose numbers vary in length."""
        if isinstance(self.mode, Options) and not self.loaded.model.objective.causal:
            _check_length_is_known(self.loaded)

    @classmethod
    def of(
        cls,
        config: Config,
        model: Artifact,
        file: TextModelFile,
        device: torch.device,
        *,
        find: Find,
        calibrated: Calibrated | None,
    ) -> "TextPredictor":
        """Load the model that ``file`` describes.

        ``find`` looks up the data that the model was trained on, and ``calibrated`` calibrates
        prediction intervals.

        Raises UsageError if the options in ``config`` do not apply to the model.
        """
        mode = prediction_mode(config, model, file)
        loaded = read_model(model, device, file)
        calibrations: Mapping[str, Calibration] = {}
        if isinstance(mode, Options):
            calibrations = target_calibrations(loaded, None, find, mode)
        return cls(loaded, mode, calibrated, calibrations)

    def predict(self, rows: Sequence[Query], note: Note) -> list[RowPrediction]:
        """Return the prediction for each row.

        Raises DataError if a row is too long, has a character that the text tokenizer cannot write,
        has no ``[?]`` although numbers are predicted (unless the model was trained on a text field,
        which the row then contains), or has ``[?]`` although its continuation is
        predicted. Raises TrainingFailed if memory runs out.
        """
        if isinstance(self.mode, Options):
            return self._numbers(rows, self.mode, note)
        if isinstance(self.mode, LabelOptions):
            return self._labels(rows, self.mode, note)
        return self._answers(rows, self.mode, note)

    def _numbers(self, rows: Sequence[Query], options: Options, note: Note) -> list[RowPrediction]:
        rows = [of_field(row, self.loaded.codec.template) for row in rows]
        drafts = [_Draft.of(row) for row in rows]
        whole = self.with_holes(
            [draft.row for draft in drafts], [draft.pieces for draft in drafts], note
        )
        if not self.loaded.model.objective.causal:
            names = [name for draft in drafts for name in draft.names()]
            predicted = iter(self._targets(whole, names, options, note))
            for draft in drafts:
                draft.predicted = list(islice(predicted, len(draft.pieces) - 1))
        # A causal model predicts each number from the text before it, with its own predictions.
        while open_drafts := [draft for draft in drafts if draft.can_continue]:
            texts = [(draft.before, "") for draft in open_drafts]
            samples = self.with_holes([draft.row for draft in open_drafts], texts)
            names = [draft.names()[0] for draft in open_drafts]
            numbers = self._targets(samples, names, options, note)
            for draft, number in zip(open_drafts, numbers, strict=True):
                draft.predicted.append(number)
        for draft in drafts:
            draft.predicted += [_NOTHING] * (len(draft.pieces) - 1 - len(draft.predicted))
        return [RowPrediction(text=draft.before, numbers=draft.predicted) for draft in drafts]

    def _labels(
        self, rows: Sequence[Query], options: LabelOptions, note: Note
    ) -> list[RowPrediction]:
        samples = self._samples(rows, [row.text for row in rows], note=note)
        predictions: list[RowPrediction] = [RowPrediction()] * len(rows)
        for indices, log_BC in ONE.batches(LabelReader(self.loaded, samples, options.batch), note):
            for index, log_C in zip(indices.tolist(), log_BC, strict=True):
                best = int(log_C.argmax())
                label = self.loaded.model.settings.classes[best]
                predictions[index] = RowPrediction(
                    label=label, probability=float(np.exp(log_C[best]))
                )
        return predictions

    def _answers(
        self, rows: Sequence[Query], options: AnswerOptions, note: Note
    ) -> list[RowPrediction]:
        codec, longest = self.loaded.codec, self.loaded.model.settings.context
        for row in rows:
            if HOLE in row.text[: row.answer_start]:
                raise DataError(
                    f"{row.where}: {HOLE} in the text cannot be combined with --fill answers. "
                    "Remove one of them"
                )
        texts = [row.text[: row.answer_start] for row in rows]
        samples = self._samples(rows, texts, answers=True, note=note)
        predictions: list[RowPrediction] = [RowPrediction()] * len(rows)
        queried = np.arange(len(rows))
        reader = AnswerReader(self.loaded, samples, queried, options, longest)
        for indices, written in ONE.batches(reader, note):
            for k, index in enumerate(indices.tolist()):
                tokens, starts, lengths, channel = written.answer(k)
                literals = codec.literals(tokens, starts, lengths, channel, in_answer=True)
                if isinstance(codec.scheme, ChannelScheme):
                    literals = _shortened(literals)
                answer = codec.joined(tokens, starts, lengths, literals, errors="replace")
                predictions[index] = RowPrediction(answer=answer, ended=bool(written.ended[k]))
        return predictions

    def _targets(
        self, samples: EncodedSplit, names: Sequence[str | None], options: Options, note: Note
    ) -> list[dict[str, Any]]:
        """Predict the numbers of all targets, whose names are None if unknown."""
        named = [name or "" for name in names]
        samples = replace(samples, target_name=pa.array(named, pa.string()))
        predictor = Predictor(self.loaded, samples, options, calibrations=self.calibrations)
        predicted = predictor.run(lambda *_: None, note)
        columns = predicted.literals.tolist(), predicted.values.tolist(), predicted.quantiles
        numbers = [
            as_number(literal, value, quantiles)
            for literal, value, quantiles in zip(*columns, strict=True)
        ]
        if self.calibrated is None:
            return numbers
        # A number without a name gets the interval of any target.
        strata = np.array([*names, None], object)[:-1]
        quantiles = predicted.quantiles
        if self.calibrations:  # intervals were calibrated with the spread of each target
            unnamed = np.array([name is None for name in names], np.bool_)
            quantiles = np.where(unnamed[:, None], np.nan, quantiles)
        ends = self.calibrated.intervals(
            Forecasts(point=predicted.values, quantiles=quantiles, strata=strata)
        )
        return [
            number | ({} if number["literal"] is None else {"interval": list(interval)})
            for number, *interval in zip(numbers, *(end.tolist() for end in ends), strict=True)
        ]

    def with_holes(
        self, rows: Sequence[Query], texts: Sequence[Sequence[str]], note: Note | None = None
    ) -> EncodedSplit:
        """Encode rows whose holes become targets; ``texts`` are the pieces around the holes."""
        return self._samples(rows, list(map(filled, texts)), texts, note=note)

    def _marks(
        self, rows: Sequence[Query], texts: Texts, pieces: Sequence[Sequence[str]], answers: bool
    ) -> Int32s | None:
        """Return the byte offsets at which answers begin, int32[rows]; None if they do not
        matter."""
        if answers:
            return texts.rows[1:]
        if not splits_answers(self.loaded.codec.normalizer.normalizer):
            return None
        pairs = zip(rows, pieces, strict=True)
        starts = [len(parts[0][: _answer_start(row, parts)].encode()) for row, parts in pairs]
        return texts.rows[:-1] + np.array(starts, np.int32)

    def _samples(
        self,
        rows: Sequence[Query],
        texts: Sequence[str],
        pieces: Sequence[Sequence[str]] = (),
        *,
        answers: bool = False,
        note: Note | None,
    ) -> EncodedSplit:
        """Encode rows of text. ``note`` reports numbers that the scheme cannot represent."""
        codec = self.loaded.codec
        data = Texts.of(pa.array(texts, pa.string()))
        spans = codec.find(data)
        names = [row.where for row in rows]
        targets = hole_numbers(names, pieces, data, spans, percent=codec.policy.percent)
        for row, problem in codec.text.unwritable(data).items():
            raise DataError(f"{rows[row].where}: {problem}. Remove the character")
        encoded = codec.encode(data, spans, self._marks(rows, data, pieces, answers))
        lost = np.isin(encoded.outcomes, LOSSES)
        lost[targets] = False
        if note is not None and (count := int(lost.sum())):
            note(
                f"{spec_of(codec.scheme)} cannot represent {counted(count, 'number')} in "
                f"rows from {rows[0].where} on. The nearest number is used instead"
            )
        samples = rows_of(encoded, targets)
        check_reads(self.loaded, samples, rows[int(samples.lengths.argmax())].where)
        return samples


def as_number(literal: str | None, value: float, quantiles: Floats) -> dict[str, Any]:
    """Return a predicted number as a mapping of :class:`RowPrediction`.

    ``literal`` is None if the output is not a number. ``quantiles``, float64[levels], may be NaN.
    """
    if literal is None:
        return _NOTHING
    levels = zip(QUANTILES, quantiles.tolist(), strict=True)
    finite_quantiles = {
        quantile_column(level): value for level, value in levels if np.isfinite(value)
    }
    return {"literal": literal, "value": value} | finite_quantiles


def _shortened(literals: Sequence[str]) -> list[str]:
    """Shorten literals to the precision of float32."""

    def short(literal: str) -> str:
        try:
            return f"{float(literal):.{DIGITS_OF_FLOAT32}g}"
        except ValueError:  # tokens without a value
            return literal

    return [short(literal) for literal in literals]
