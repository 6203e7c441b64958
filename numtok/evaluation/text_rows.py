"""Rows of text with numbers that nobody knows, and what a model of texts says of them.

A number that is asked for is written ``[?]``. A masked model fills in all of a row together, an
autoregressive one each behind the text before it, its own numbers among that. A model of labels is
asked for the label of each row, and with ``fill`` ``answers`` an autoregressive one writes on where
the text ends.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import torch

from numtok.arrays import Floats
from numtok.data.reading.json_lines import json_lines, row_decoder
from numtok.data.tables.file import FORMATS
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.holes import HOLE, filled, hole_numbers
from numtok.encoding.in_memory import rows_of
from numtok.encoding.schemes.base import LOSSES, ChannelScheme
from numtok.encoding.texts import Texts
from numtok.errors import DataError, UsageError
from numtok.evaluation.answers import AnswerOptions, AnswerReader
from numtok.evaluation.devices import ONE, Note, devices
from numtok.evaluation.labels import LabelOptions, LabelReader
from numtok.evaluation.predict import Options, Predictor
from numtok.evaluation.prediction_mode import Mode, prediction_mode
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.registry import spec_of
from numtok.reports import QUANTILES, quantile_column
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.model_files import AskedModel, check_reads, read_model
from numtok.training.model_json import TextModelFile

_ROWS = 1024  # read at a time
_SHOWN = 40  # characters of a text in a message, at most


class Query(NamedTuple):
    """A row: where it stands, for messages, what it is as JSON, and its text."""

    where: str
    line: bytes
    text: str
    answer_start: int | None = None  # in code points; None: the text's end

    @classmethod
    def of_text(cls, text: str) -> "Query":
        """A text alone; UsageError for one that is no Unicode."""
        try:
            line = msgspec.json.encode({"text": text})
        except UnicodeEncodeError:
            raise UsageError(f"--text {text!r} is not UTF-8; write it as UTF-8") from None
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
        return cls(repr(shown), line, text)


class RowPrediction(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a model says of a row; of the fields, those that it was asked for.

    ``text`` is the row's with the numbers filled in, as far as they are numbers; ``numbers`` have
    ``literal`` and ``value``, both null where what was said is no number, and the quantiles of the
    predictive distribution where there is one.
    """

    text: str | None = None
    numbers: list[dict[str, Any]] | None = None
    label: str | None = None
    probability: float | None = None
    answer: str | None = None
    ended: bool | None = None  # the model said so; else the answer was stopped


def read_rows(path: str, text_field: str = "text") -> Iterator[Query]:
    """The rows of a file of JSONL, plain or packed; of standard input for ``-``.

    Raises UsageError for a file that is not there, DataError for a line that is no row.
    """
    if path.endswith(FORMATS):
        raise UsageError(f"{path} is a table, this is a model of texts; give it JSONL of texts")
    for where, line, row in json_lines(path, row_decoder(_GivenRow, text_field)):
        yield _query(where, line, row)


def predict_texts(
    config: Config, model: Artifact, file: TextModelFile, rows: Iterable[Query], note: Note
) -> Iterator[tuple[Query, RowPrediction]]:
    """Each row with what a model, whose file was read, says of it, some rows at a time, in order.

    Raises UsageError for what the model cannot be asked, DataError for rows without a ``[?]``, or
    too long, TrainingFailed (no memory).
    """
    device = device_of(config.device)
    with devices(config.devices, device) as these:
        asking = TextPredictor.of(config, model, file, device)
        waiting: deque[list[Query]] = deque()

        def blocks() -> Iterator[list[Query]]:
            left = iter(rows)
            while some := list(islice(left, _ROWS)):
                waiting.append(some)
                yield some

        for said in these.each(asking, TextPredictor.say, blocks(), note):
            yield from zip(waiting.popleft(), said, strict=True)


def outgoing(row: Query, said: RowPrediction) -> bytes:
    """The row's line as it was, with ``predicted`` as its last field.

    >>> outgoing(Query.of_text("it is [?]"), RowPrediction(text="it is 7"))
    b'{"text":"it is [?]","predicted":{"text":"it is 7"}}\\n'
    """
    return row.line[:-1] + b',"predicted":' + msgspec.json.encode(said) + b"}\n"


def _check_length_is_known(loaded: AskedModel) -> None:
    scheme = loaded.codec.scheme
    if scheme.tokens_per_number is None:
        raise UsageError(
            f"{loaded.ref} is masked and reads as many masks as a number has tokens, "
            f"which with {spec_of(scheme)} nobody knows of a number that is not there; ask an "
            "autoregressive model (--objective ar), or one of a scheme with as many for all"
        )


class _GivenRow(msgspec.Struct):
    """The fields of a line that a prediction uses."""

    text: str
    predicted: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    answer_start: int | None = None


def _query(where: str, line: bytes, row: _GivenRow) -> Query:
    if row.predicted is not msgspec.UNSET:
        raise DataError(f"{where}: the row has a field predicted, which would be lost; rename it")
    if row.answer_start is not None and not 0 <= row.answer_start <= len(row.text):
        raise DataError(
            f"{where}: answer_start is {row.answer_start}, the text has {len(row.text)} characters"
        )
    return Query(where, line, row.text, row.answer_start)


@dataclass
class _Draft:
    """A row whose holes are filled one after the other."""

    row: Query
    pieces: list[str]  # the text around its holes: one more than these
    said: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, row: Query) -> "_Draft":
        pieces = row.text.split(HOLE)
        if len(pieces) == 1:
            raise DataError(
                f"{row.where}: its text has no {HOLE}; write {HOLE} for each number that is asked "
                "for, or have an autoregressive model write on with --fill answers"
            )
        return cls(row, pieces)

    @property
    def before(self) -> str:
        """The text before the next hole, or all of it; numbers that are none stay holes."""
        known = [one["literal"] or HOLE for one in self.said]
        pairs = zip(self.pieces, [*known, ""], strict=False)
        return "".join(piece + number for piece, number in pairs)

    @property
    def goes_on(self) -> bool:
        """Whether there is a hole left, and each before it is filled."""
        is_left = len(self.said) < len(self.pieces) - 1
        return is_left and all(one["literal"] is not None for one in self.said)


_NOTHING = {"literal": None, "value": None}


@dataclass(frozen=True)
class TextPredictor:
    """A model in memory, and what it predicts."""

    loaded: AskedModel
    mode: Mode

    def __post_init__(self) -> None:
        """Raise UsageError for a masked model that cannot know how long a number is."""
        if isinstance(self.mode, Options) and not self.loaded.model.objective.causal:
            _check_length_is_known(self.loaded)

    @classmethod
    def of(
        cls, config: Config, model: Artifact, file: TextModelFile, device: torch.device
    ) -> "TextPredictor":
        """Read a model, whose file was read; UsageError for what it cannot predict."""
        mode = prediction_mode(config, model, file)
        return cls(read_model(model, device, file), mode)

    def say(self, rows: Sequence[Query], note: Note) -> list[RowPrediction]:
        """What the model says of each row. Raises DataError for rows without a ``[?]``, or too
        long, TrainingFailed (no memory)."""
        if isinstance(self.mode, Options):
            return self._numbers(rows, self.mode, note)
        if isinstance(self.mode, LabelOptions):
            return self._labels(rows, self.mode, note)
        return self._answers(rows, self.mode, note)

    def _numbers(self, rows: Sequence[Query], options: Options, note: Note) -> list[RowPrediction]:
        drafts = [_Draft.of(row) for row in rows]
        whole = self._with_holes(rows, [draft.pieces for draft in drafts], note)
        if not self.loaded.model.objective.causal:
            said = iter(self._targets(whole, options, note))
            for draft in drafts:
                draft.said = list(islice(said, len(draft.pieces) - 1))
        # Else each behind what was said before it.
        while going := [draft for draft in drafts if draft.goes_on]:
            texts = [(draft.before, "") for draft in going]
            samples = self._with_holes([draft.row for draft in going], texts)
            for draft, number in zip(going, self._targets(samples, options, note), strict=True):
                draft.said.append(number)
        for draft in drafts:
            draft.said += [_NOTHING] * (len(draft.pieces) - 1 - len(draft.said))
        return [RowPrediction(text=draft.before, numbers=draft.said) for draft in drafts]

    def _labels(
        self, rows: Sequence[Query], options: LabelOptions, note: Note
    ) -> list[RowPrediction]:
        samples = self._samples(rows, [row.text for row in rows], note=note)
        found: list[RowPrediction] = [RowPrediction()] * len(rows)
        for places, log_BC in ONE.batches(LabelReader(self.loaded, samples, options.batch), note):
            for place, log_C in zip(places.tolist(), log_BC, strict=True):
                best = int(log_C.argmax())
                label = self.loaded.model.settings.classes[best]
                found[place] = RowPrediction(label=label, probability=float(np.exp(log_C[best])))
        return found

    def _answers(
        self, rows: Sequence[Query], options: AnswerOptions, note: Note
    ) -> list[RowPrediction]:
        codec, longest = self.loaded.codec, self.loaded.model.settings.context
        for row in rows:
            if HOLE in row.text[: row.answer_start]:
                raise DataError(
                    f"{row.where}: its text has a {HOLE}, which --fill answers does not fill; "
                    "leave one of them out"
                )
        texts = [row.text[: row.answer_start] for row in rows]
        samples = self._samples(rows, texts, answers=True, note=note)
        found: list[RowPrediction] = [RowPrediction()] * len(rows)
        asked = np.arange(len(rows))
        reader = AnswerReader(self.loaded, samples, asked, options, longest)
        for places, written in ONE.batches(reader, note):
            for k, place in enumerate(places.tolist()):
                tokens, starts, lengths, channel = written.answer(k)
                literals = codec.literals(tokens, starts, lengths, channel)
                if isinstance(codec.scheme, ChannelScheme):
                    literals = _shortened(literals)
                answer = codec.joined(tokens, starts, lengths, literals, errors="replace")
                found[place] = RowPrediction(answer=answer, ended=bool(written.ended[k]))
        return found

    def _targets(self, samples: EncodedSplit, options: Options, note: Note) -> list[dict[str, Any]]:
        """Predict the numbers of all targets."""
        predicted = Predictor(self.loaded, samples, options).run(lambda *_: None, note)
        found = predicted.literals.tolist(), predicted.values.tolist(), predicted.quantiles
        return [
            _number(literal, value, quantiles)
            for literal, value, quantiles in zip(*found, strict=True)
        ]

    def _with_holes(
        self, rows: Sequence[Query], texts: Sequence[Sequence[str]], note: Note | None = None
    ) -> EncodedSplit:
        """``texts`` are the pieces around the holes of each row, which become targets."""
        return self._samples(rows, list(map(filled, texts)), texts, note=note)

    def _samples(
        self,
        rows: Sequence[Query],
        texts: Sequence[str],
        pieces: Sequence[Sequence[str]] = (),
        *,
        answers: bool = False,
        note: Note | None = None,
    ) -> EncodedSplit:
        """``note`` is told of numbers that the scheme cannot write."""
        codec = self.loaded.codec
        data = Texts.of(pa.array(texts, pa.string()))
        spans = codec.find(data)
        names = [row.where for row in rows]
        targets = hole_numbers(names, pieces, data, spans, percent=codec.policy.percent)
        for row, problem in codec.text.unwritable(data).items():
            raise DataError(f"{rows[row].where}: {problem}. Remove the character")
        encoded = codec.encode(data, spans, data.rows[1:] if answers else None)
        lost = np.isin(encoded.outcomes, LOSSES)
        lost[targets] = False
        if note is not None and lost.any():
            note(
                f"of the numbers in rows from {rows[0].where} on {int(lost.sum()):,} cannot be "
                f"written in {spec_of(codec.scheme)}, and the nearest that can is read"
            )
        samples = rows_of(encoded, targets)
        check_reads(self.loaded, samples, rows[int(samples.lengths.argmax())].where)
        return samples


def _number(literal: str | None, value: float, quantiles: Floats) -> dict[str, Any]:
    if literal is None:
        return _NOTHING
    known = zip(QUANTILES, quantiles.tolist(), strict=True)
    told = {quantile_column(level): value for level, value in known if np.isfinite(value)}
    return {"literal": literal, "value": value} | told


def _shortened(literals: Sequence[str]) -> list[str]:
    """With as many digits as float32 has."""

    def short(literal: str) -> str:
        try:
            return f"{float(literal):.{DIGITS_OF_FLOAT32}g}"
        except ValueError:  # tokens that have no value
            return literal

    return [short(literal) for literal in literals]
