"""A model that writes whole answers, on one split: what it wrote, and the report of it.

Every row's answer is written from left to right behind the text before it, until the model ends it;
nothing of the true answer is seen. Numbers are asked for one by one elsewhere (``predict``), each
behind the true text before it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from numtok.evaluation.evaluation import EvaluatedSplit, ReportMetrics
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores
from numtok.metrics.base import Predictions
from numtok.models.batches import Batches
from numtok.models.generation import Writer, WrittenAnswers
from numtok.models.trunks.base import TrunkCache
from numtok.numerals.literals import DIGITS_OF_FLOAT32
from numtok.reports import AnswerTexts, Measures
from numtok.training.model_files import AskedModel

ANSWERS = "answers"  # what --fill is called
_METRICS = (
    "answer-exact-match", "answer-exact-match,rule=strict", "answer-digit-match",
    "answer-d-length", "answer-d-length,parts=yes", "answered",
)  # fmt: skip
_IN_GROUPS = ("answer-exact-match", "answer-digit-match", "answer-d-length", "answered")
_SPARE = 16  # tokens that an answer may have beyond twice the longest true one
# Of prompts and answers of a batch, at most.
_TOKENS = {"cpu": 1 << 15, "cuda": 1 << 18, "mps": 1 << 16}


#: Tokens, where its numbers start in them, how long they are, and their channel.
_Answer = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], Channel | None]


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are written: at most ``batch`` at a time, and only what the scheme's grammar
    allows if ``constrained``."""

    measures: ClassVar[Measures] = "answers"
    constrained: bool
    batch: int


class AnswerReader:
    """Has a model write behind the ``answer_start`` of the rows ``asked``, int64[a], at most
    ``longest`` tokens each."""

    def __init__(
        self,
        loaded: AskedModel,
        samples: EncodedSplit,
        asked: Ints,
        options: AnswerOptions,
        longest: int,
    ) -> None:
        codec, batch = loaded.codec, options.batch
        self._made_of = loaded, samples, asked, options, longest
        self._writer = Writer(
            model=loaded.model,
            codec=codec,
            grammar=Grammar(codec.scheme),
            constrained=options.constrained,
            longest=longest,
        )
        self._batches = Batches(samples, learnt_values(samples, codec), batch)
        self._memory: TrunkCache | None = None  # serves all batches
        self.asked = asked
        self.lengths: Ints = samples.answer_start[asked].astype(np.int64) + 1 + longest
        self.room = BatchSizer.of(loaded.model, batch, _TOKENS)

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes."""
        return AnswerReader, self._made_of

    def answers(self, places: Ints) -> WrittenAnswers:
        """Those of some rows, by their places int64[k] in ``asked``."""
        batch = self._batches.of(self.asked[places])
        written, self._memory = self._writer.write(batch, self._memory)
        return written

    def forget(self) -> None:
        """Give back the memory that serves all batches."""
        self._memory = None


@dataclass(frozen=True)
class AnswerEvaluation:
    """Of a model that writes answers."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _IN_GROUPS)
    train_means: ClassVar[TrainMeans] = TrainMeans(None)
    evaluated: EvaluatedSplit
    options: AnswerOptions

    @classmethod
    def of(cls, evaluated: EvaluatedSplit, options: AnswerOptions) -> "AnswerEvaluation":
        """Raises DataError where no row has an answer."""
        if (evaluated.samples.answer_start < 0).all():
            raise DataError(
                f"{evaluated} has no row with answer_start, so nobody knows where an answer "
                "begins; encode data with answer_start"
            )
        return cls(evaluated, options)

    @property
    def samples(self) -> EncodedSplit:
        """The rows of the split, encoded, those without an answer among them."""
        return self.evaluated.samples

    @property
    def codec(self) -> Codec:
        """That of the model's data, by which its answers are read."""
        return self.evaluated.loaded.codec

    @cached_property
    def asked(self) -> Ints:
        """[a]: the rows that have an answer."""
        return np.flatnonzero(self.samples.answer_start >= 0)

    @cached_property
    def longest(self) -> int:
        """After how many tokens an answer is stopped: the same for all rows of the split."""
        samples = self.samples
        true = samples.lengths[self.asked] - samples.answer_start[self.asked]
        return 2 * int(true.max()) + _SPARE

    def predictions(self, progress: Done, note: Note) -> "pa.Table":
        """The rows of predictions.parquet."""
        count, done = len(self.asked), 0
        texts, ended = np.empty(count, object), np.empty(count, np.bool_)
        true = [literals for _, literals in self.truths.values()]
        loaded = self.evaluated.loaded
        reader = AnswerReader(loaded, self.samples, self.asked, self.options, self.longest)
        for places, written in self.evaluated.devices.batches(reader, note):
            ended[places] = written.ended
            for k, place in enumerate(places.tolist()):
                texts[place] = self._text(written.answer(k), true[place])
            done += len(places)
            progress(done, count)
        columns = {
            "answer": [text for text, _ in self.truths.values()],
            "prediction": texts,
            "ended": ended,
        }
        return self.evaluated.table(columns, "answers", pa.array(self.asked))

    def _text(self, answer: _Answer, true: Sequence[str]) -> str:
        """Tokens as text. Numbers of schemes that write values are put into the notation of the
        true ones (``true``), each into that of the one at its place."""
        (tokens, starts, lengths, channel), codec = answer, self.codec
        literals = codec.literals(tokens, starts, lengths, channel)
        if not codec.keeps_literals:
            told = [*true, *[true[-1] if true else ""] * len(literals)]
            single = isinstance(codec.scheme, ChannelScheme) and not codec.scheme.exact
            digits = DIGITS_OF_FLOAT32 if single else 0
            literals = [
                str(in_notation(truth, said, digits))
                for truth, said in zip(told, literals, strict=False)
            ]
        return codec.joined(tokens, starts, lengths, literals, errors="replace")

    @cached_property
    def truths(self) -> Mapping[int, tuple[str, list[str]]]:
        """Of each row that is asked the true answer, and the numbers in it, as written."""
        samples, truths = self.samples, {}
        literals_of_targets = samples.target_literal.to_pylist()
        known = dict(zip(samples.targets.tolist(), literals_of_targets, strict=True))
        for row in self.asked.tolist():
            tokens, starts, lengths, numbers = samples.answer(row)
            literals = [known.get(number, "") for number in numbers.tolist()]
            if not all(literals):  # shards keep the literals of targets alone
                channel = None if samples.channel is None else samples.channel[numbers]
                told = (
                    self.codec.literals(tokens, starts, lengths, channel)
                    if self.codec.keeps_literals
                    else map(repr, samples.numbers[numbers].tolist())
                )
                literals = [one or other for one, other in zip(literals, told, strict=True)]
            text = self.codec.joined(tokens, starts, lengths, literals)
            truths[row] = text, literals
        return truths

    def facts(self, table: "pa.Table", scores: Scores) -> dict[str, Any]:
        """As of :class:`Evaluator`: ``invalid`` is the share of texts in which no answer is
        found. Those that did not end within ``longest`` tokens are counted."""
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
        """What a model would write that makes no mistake: less than the truth where the scheme
        rounds. The table is in the order of ``asked``."""
        perfect = []
        for row, (_, literals) in self.truths.items():
            tokens, starts, lengths, numbers = self.samples.answer(row)
            channel = self.samples.channel
            beside = None if channel is None else channel[numbers]
            perfect.append(self._text((tokens, starts, lengths, beside), literals))
        truth = list(scores.answers.truth_literal or ())
        answers = Predictions.of_texts(truth, perfect, sample=scores.answers.sample)
        yield BaselineAnswers("quantisation", answers)

    def notes(self, table: "pa.Table", scores: Scores, baselines: Collection[str]) -> Iterator[str]:
        """How many rows were not asked, and whose notation numbers have where the scheme keeps
        none."""
        yield from self.evaluated.notes(scores)
        if lacking := len(self.samples) - len(self.asked):
            yield f"Not asked: {lacking:,} rows without answer_start."
        if not self.codec.keeps_literals:
            yield (
                "The scheme writes values: numbers of an answer are given in the notation of the "
                "true ones at their places."
            )
