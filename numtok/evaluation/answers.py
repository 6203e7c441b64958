"""Evaluation of models that write whole answers.

For each row, the model reads the text before the answer and then writes the answer from left to
right, until it ends the answer or reaches the token limit. Its input never includes any part of the
true answer. In the module ``predict``, by contrast, each number is predicted from the true text
before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.data.nupa.answers import in_notation
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar
from numtok.encoding.schemes.base import Channel, ChannelScheme
from numtok.encoding.splits import learnt_values
from numtok.errors import DataError
from numtok.evaluation.devices import BatchSizer, Done, Note
from numtok.evaluation.evaluation import EvaluatedSplit, ReportMetrics, TextEvaluation
from numtok.evaluation.queries import unwritten
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores
from numtok.metrics.base import Predictions
from numtok.models.batches import Batches
from numtok.models.generation import Writer, WrittenAnswers
from numtok.models.trunks.base import TrunkCache
from numtok.names import counted
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.reports import AnswerTexts, Measures
from numtok.training.model_files import AskedModel

ANSWERS = "answers"  # value of --fill
_METRICS = (
    "answer-exact-match", "answer-exact-match,rule=strict", "answer-digit-match",
    "answer-d-length", "answer-d-length,parts=yes", "answered",
)  # fmt: skip
_IN_GROUPS = ("answer-exact-match", "answer-digit-match", "answer-d-length", "answered")
_SPARE = 16  # tokens allowed beyond twice the length of the longest true answer
# Maximum number of tokens in the prompts and answers of a batch.
_TOKENS = {"cpu": 1 << 15, "cuda": 1 << 18, "mps": 1 << 16}


#: Tokens of an answer, start and length of each number in them, and the channel of the numbers.
_Answer = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], Channel | None]


@dataclass(frozen=True)
class AnswerOptions:
    """Decoding options for models that write whole answers.

    constrained
        True to generate only tokens that the scheme's grammar allows.
    batch
        Maximum number of answers that are generated at a time.
    """

    measures: ClassVar[Measures] = "answers"
    constrained: bool
    batch: int


class AnswerReader:
    """Predictor that generates answers for the rows with the indices ``queried``, int64[a] (see
    ``devices.BatchReader``).

    Each answer begins at the row's ``answer_start`` and has at most ``longest`` tokens.
    """

    def __init__(
        self,
        loaded: AskedModel,
        samples: EncodedSplit,
        queried: Ints,
        options: AnswerOptions,
        longest: int,
    ) -> None:
        codec, batch = loaded.codec, options.batch
        self._arguments = loaded, samples, queried, options, longest
        self._writer = Writer(
            model=loaded.model,
            codec=codec,
            grammar=Grammar(codec.scheme),
            constrained=options.constrained,
            longest=longest,
        )
        self._batches = Batches(samples, learnt_values(samples, codec), batch)
        self._memory: TrunkCache | None = None  # reused by all batches
        self.queried = queried
        self.lengths: Ints = samples.answer_start[queried].astype(np.int64) + 1 + longest
        self.room = BatchSizer.of(loaded.model, batch, _TOKENS)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the constructor's arguments to worker processes."""
        return AnswerReader, self._arguments

    def answers(self, indices: Ints) -> WrittenAnswers:
        """Generate the answers for the rows ``queried[indices]``. ``indices`` is int64[k]."""
        batch = self._batches.of(self.queried[indices])
        written, self._memory = self._writer.write(batch, self._memory)
        return written

    def forget(self) -> None:
        """Release the cache that is kept between batches."""
        self._memory = None


@dataclass(frozen=True)
class AnswerEvaluation(TextEvaluation):
    """Evaluation of a model that writes whole answers."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _IN_GROUPS)
    options: AnswerOptions

    @classmethod
    def of(cls, evaluated: EvaluatedSplit, options: AnswerOptions) -> "AnswerEvaluation":
        """Build the evaluation for a split. Raises DataError if no row has an answer."""
        if (evaluated.samples.answer_start < 0).all():
            raise DataError(
                f"no row in {evaluated} has answer_start, the start of its answer. Encode data "
                "whose rows have answer_start"
            )
        return cls(evaluated, options)

    @property
    def codec(self) -> Codec:
        """Codec of the model, which decodes the generated answers."""
        return self.loaded.codec

    @cached_property
    def queried(self) -> Ints:
        """Indices [a] of the rows that have an answer."""
        return np.flatnonzero(self.samples.answer_start >= 0)

    @cached_property
    def longest(self) -> int:
        """Maximum number of tokens per answer, the same for all rows: twice the length of the
        longest true answer, plus a margin."""
        samples = self.samples
        true = samples.lengths[self.queried] - samples.answer_start[self.queried]
        return 2 * int(true.max()) + _SPARE

    def predictions(self, progress: Done, note: Note) -> pa.Table:
        """Generate all answers, and return the table that is stored in predictions.parquet."""
        count, done = len(self.queried), 0
        texts, ended = np.empty(count, object), np.empty(count, np.bool_)
        true = [literals for _, literals in self.truths.values()]
        reader = AnswerReader(self.loaded, self.samples, self.queried, self.options, self.longest)
        for indices, written in self.evaluated.devices.batches(reader, note):
            ended[indices] = written.ended
            for k, index in enumerate(indices.tolist()):
                texts[index] = self._text(written.answer(k), true[index])
            done += len(indices)
            progress(done, count)
        columns = {
            "answer": [text for text, _ in self.truths.values()],
            "prediction": texts,
            "ended": ended,
        }
        return self.evaluated.table(columns, "answers", pa.array(self.queried))

    def _text(self, answer: _Answer, true: Sequence[str]) -> str:
        """Decode an answer as text.

        If the scheme does not keep the notation of numbers, each number is written in the notation
        of the number at the same index in ``true``, the literals of the true answer.
        """
        (tokens, starts, lengths, channel), codec = answer, self.codec
        literals = codec.literals(tokens, starts, lengths, channel, in_answer=True)
        if not codec.keeps_literals:
            notations = [*true, *[true[-1] if true else ""] * len(literals)]
            single = isinstance(codec.scheme, ChannelScheme) and not codec.scheme.exact
            digits = DIGITS_OF_FLOAT32 if single else 0
            literals = [
                str(in_notation(truth, literal, digits))
                for truth, literal in zip(notations, literals, strict=False)
            ]
        return codec.joined(tokens, starts, lengths, literals, errors="replace")

    @cached_property
    def truths(self) -> Mapping[int, tuple[str, list[str]]]:
        """True answer for each queried row, with the literals of the numbers in the answer, keyed
        by row index."""
        samples, truths = self.samples, {}
        literals_of_targets = samples.target_literal.to_pylist()
        target_literals = dict(zip(samples.targets.tolist(), literals_of_targets, strict=True))
        for row in self.queried.tolist():
            tokens, starts, lengths, numbers = samples.answer(row)
            literals = [target_literals.get(number, "") for number in numbers.tolist()]
            if not all(literals):  # shards keep only the literals of targets
                channel = None if samples.channel is None else samples.channel[numbers]
                decoded = (
                    self.codec.literals(tokens, starts, lengths, channel)
                    if self.codec.keeps_literals
                    else unwritten(samples.numbers[numbers])
                )
                literals = [
                    literal or substitute
                    for literal, substitute in zip(literals, decoded, strict=True)
                ]
            text = self.codec.joined(tokens, starts, lengths, literals)
            truths[row] = text, literals
        return truths

    def facts(self, table: pa.Table, scores: Scores) -> dict[str, Any]:
        """Return the fields of :class:`Report` that are specific to answers, keyed by name.

        ``invalid`` is the fraction of generated texts that contain no answer. ``texts`` contains
        the token limit :attr:`longest` and the number of answers that did not end within it.
        """
        answered = scores.metrics["answered"].value
        stopped = int(pc.sum(pc.invert(table.column("ended"))).as_py())
        return self.evaluated.facts(self.samples.number_length) | {
            "decoding": {
                "fill": ANSWERS,
                "decode": "constrained" if self.options.constrained else "free",
            },
            "numbers": table.num_rows,
            "invalid": 0.0 if answered is None else 1 - answered,
            "texts": AnswerTexts(self.longest, stopped),
        }

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Yield one baseline, in the order of :attr:`queried`: the answers that an error-free model
        would write. They differ from the true answers only by the scheme's rounding."""
        perfect = []
        for row, (_, literals) in self.truths.items():
            tokens, starts, lengths, numbers = self.samples.answer(row)
            channel = self.samples.channel
            of_numbers = None if channel is None else channel[numbers]
            perfect.append(self._text((tokens, starts, lengths, of_numbers), literals))
        truth = list(scores.answers.truth_literal or ())
        answers = Predictions.of_texts(truth, perfect, sample=scores.answers.sample)
        yield BaselineAnswers("quantization", answers)

    def notes(self, table: pa.Table, scores: Scores) -> Iterator[str]:
        """Yield the report's notes about skipped rows and about the notation of numbers in
        answers."""
        yield from self.evaluated.notes(scores)
        if lacking := len(self.samples) - len(self.queried):
            yield f"Skipped {counted(lacking, 'row')} without answer_start."
        if not self.codec.keeps_literals:
            yield (
                "The scheme does not keep the notation of numbers: each number in an answer takes "
                "the notation of the true number at the same position."
            )
