"""Predictions of a model for the numbers of a split, batch by batch.

Asked for are the targets of each row; where a row has none, every number of it
in turn, so that each is predicted with all others in sight. A masked model
fills in a row's targets together, an autoregressive one says each after the
true text before it, and reads the row once for all of them.

What is predicted does not depend on the size of the batches: what is drawn for a
number is a pure function of the number, and only the last bits of sums of
floats, which a device may take in another order, differ with the shape of a batch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Ints, ranges
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar
from numtok.encoding.schemes.base import splits_numbers
from numtok.encoding.splits import learnt_values
from numtok.errors import UsageError
from numtok.evaluation.devices import ONE, BatchSizer, Devices, Done, Note
from numtok.evaluation.queries import number_names, queries_of, resolutions
from numtok.evaluation.raw_numbers import RawNumbers, listed, with_tails
from numtok.models.batches import Batch, Batches, positions
from numtok.models.decoding import LONGEST, NumberReadings, Reader
from numtok.models.distributions.multiples import Multiples
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import Empirical as Drawn
from numtok.models.heads.base import Calibration, ValueHead, default_point
from numtok.models.steps import DecodingStates, ParallelFill, Prefill, SequentialFill
from numtok.models.trunks.base import TrunkCache
from numtok.reports import QUANTILES, Measures
from numtok.seeds import uniforms
from numtok.training.model_files import AskedModel

PARALLEL, LEFT_TO_RIGHT, AUTOREGRESSIVE = "parallel", "left-to-right", "autoregressive"
POINTS = ("mode", "median", "mean")
_SCORES = (
    "values", "log_density", "crps", "pit", "log_density_tailed", "log_interval", "token_nll",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options:
    """How numbers are read off.

    fill
        ``parallel``, ``left-to-right`` or ``autoregressive``.
    constrained
        Only what the scheme's grammar allows; else whatever is most probable.
    point
        ``mode``: the value with the highest density in raw units, or what greedy decoding of tokens
        and digits gives; ``median`` or ``mean`` of the distribution.
    draws
        Numbers drawn for the distribution where it has no exact form (autoregressive tokens).
    batch
        Rows that are read at a time, at most (fewer where they are long), and numbers that are
        then told from what was read.
    """

    measures: ClassVar[Measures] = "numbers"
    fill: str
    constrained: bool
    point: str
    draws: int
    batch: int


class Predicted(NamedTuple):
    """Columns of ``a`` predictions; NaN where there is no figure."""

    values: Floats  # raw, NaN if invalid
    literals: NDArray[np.object_]  # str, None if invalid
    valid: Bools
    on_grammar: Bools
    log_density: Floats
    crps: Floats
    quantiles: Floats  # [a, len(QUANTILES)]
    pit: Floats
    log_density_tailed: Floats
    log_interval: Floats
    token_nll: Floats


class Predictor:
    """A model, the rows it is asked about, and how.

    ``learnt_from`` is how many numbers its train split has: what lies beyond the ends of a
    bounded head is as probable as they say (``distributions.tailed``). None: not known.
    ``spreads`` are what a calibrated head needs for each target, where one for all would be wrong.
    """

    def __init__(
        self,
        loaded: AskedModel,
        samples: EncodedSplit,
        options: Options,
        learnt_from: int | None = None,
        spreads: Mapping[str, Calibration] | None = None,
    ) -> None:
        self.loaded = loaded
        self._learnt_from = learnt_from
        self.spreads = spreads or {}
        self.samples = samples
        self.options = options
        codec = loaded.codec
        self.batches = Batches(samples, learnt_values(samples, codec), options.batch)
        self.grammar = Grammar(codec.scheme)
        # As long as the longest that is asked for can be, where nothing else says how long.
        self.longest = max(LONGEST, int(samples.number_length.max(initial=0)))
        self.reader = Reader(
            model=loaded.model,
            codec=codec,
            grammar=self.grammar,
            constrained=options.constrained,
            longest=self.longest,
        )
        self.asked = queries_of(samples, options.fill == AUTOREGRESSIVE)
        self._resolutions = resolutions(samples)
        self._cache: TrunkCache | None = None  # its memory serves all batches
        self.room = BatchSizer.of(loaded.model, options.batch)
        one_pass = options.fill == PARALLEL or codec.scheme.tokens_per_number == 1
        #: All numbers of the scheme, where their probabilities come from one pass.
        self.support = listed(codec, loaded.model, self.grammar) if one_pass else None
        self._raw = RawNumbers(codec, loaded.model, self.support)
        if options.point != "mode" and not self.has_distribution:
            raise UsageError(
                f"--point {options.point} needs a predictive distribution, which this model has "
                f"not where it is read {options.fill}: its tokens are read one after the other, or "
                "its scheme cannot be listed; give --num-samples 64, or --point mode"
            )

    @property
    def draws(self) -> int:
        """How many are drawn: none where the distribution has an exact form."""
        return self.options.draws if self._only_path else 0

    @property
    def has_distribution(self) -> bool:
        """Whether there is more than a density: a mean, quantiles."""
        return not self._only_path or self.draws > 0

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which are told what to read, not what was made for that."""
        made_of = self.loaded, self.samples, self.options, self._learnt_from, self.spreads
        return Predictor, made_of

    def run(self, progress: Done, note: Note, devices: Devices = ONE) -> Predicted:
        """Predict every number that is asked for, in the order of :attr:`asked`.

        Where memory is out, batches of half as many tokens follow, down to one row; then
        TrainingFailed.
        """
        parts, order, done = [], [], 0
        for _, (asked, part) in devices.batches(self, note):
            parts.append(part)
            order.append(asked)
            done += len(asked)
            progress(done, len(self.asked.numbers))
        place = np.argsort(np.concatenate(order))
        return Predicted(*(np.concatenate(column)[place] for column in zip(*parts, strict=True)))

    def answers(self, queries: Ints) -> tuple[Ints, Predicted]:
        """What is asked for in some queries, by their indices int64[k], and the predictions."""
        asked, batch, chosen, place = self._batch(queries)
        tokens, numbers = self._true_tokens(batch, chosen), batch.number[chosen]
        parts = [
            self._predicted(steps, numbers[part], tokens[part])
            for part, steps in self._steps(batch, chosen)
        ]
        columns = zip(*parts, strict=True)
        return asked, Predicted(*(np.concatenate(column)[place] for column in columns))

    def forget(self) -> None:
        """Give back the memory that serves all batches."""
        self._cache = None

    @cached_property
    def lengths(self) -> Ints:
        """int64[q]: how many tokens of each query's row are read."""
        if self.options.fill != AUTOREGRESSIVE:
            return self.samples.lengths[self.asked.rows]
        ends = self.samples.number_start.astype(np.int64) + self.samples.number_length
        last = np.searchsorted(self.asked.queries, np.arange(len(self.asked.rows)), "right") - 1
        return ends[self.asked.numbers[last]]

    def _batch(self, queries: Ints) -> tuple[Ints, Batch, Bools, Ints]:
        """What is asked for in some queries, their rows, which of the numbers of these are asked
        for, and where among those each of the first is: one number can be two targets."""
        first, end = np.searchsorted(self.asked.queries, [queries, queries + 1])
        asked, batch = ranges(first, end - first), self.batches.of(self.asked.rows[queries])
        # A row can be there several times, once for each of its numbers.
        many = len(self.samples.numbers)
        row = np.repeat(np.arange(len(queries)), end - first)
        wanted = row * many + self.asked.numbers[asked]
        every = batch.number_row * many + batch.number
        chosen = np.isin(every, wanted)
        return asked, batch, chosen, np.searchsorted(every[chosen], wanted)

    def parts(self) -> Iterator[Ints]:
        """All queries by their indices int64[k], as many at a time as memory has room for."""
        size = self.room.rows(self.samples.longest)
        for begin in range(0, len(self.asked.rows), size):
            yield np.arange(begin, min(begin + size, len(self.asked.rows)))

    def passes(self, queries: Ints) -> Iterator[tuple[Ints, DecodingStates]]:
        """The numbers that are asked for in some queries, by their indices [n] in the split, some
        at a time, with the steps that read them: for who asks more of the model than a
        prediction."""
        _, batch, chosen, _ = self._batch(queries)
        for part, steps in self._steps(batch, chosen):
            yield batch.number[chosen][part], steps

    def _steps(self, batch: Batch, chosen: Bools) -> Iterator[tuple[slice, DecodingStates]]:
        """The chosen numbers; where they do not depend on each other, some at a time."""
        model, width = self.loaded.model, self.loaded.codec.scheme.tokens_per_number
        size = max(len(batch.tokens), self.room.rows(batch.tokens.shape[1]))
        parts = [slice(first, first + size) for first in range(0, int(chosen.sum()), size)]
        if self.options.fill == AUTOREGRESSIVE:
            prompts = Prefill(model, batch, chosen, width or self.longest, self._cache)
            self._cache = prompts.cache
            yield from ((part, prompts.steps(part)) for part in parts)
        elif self.options.fill == LEFT_TO_RIGHT and width != 1:
            yield slice(None), SequentialFill(model, batch, chosen)
        else:
            masked = ParallelFill.masked(model, batch, chosen)
            yield from ((part, masked.part(part)) for part in parts)

    def _predicted(self, steps: DecodingStates, numbers: Ints, tokens: Ints) -> Predicted:
        """Predict numbers of the split, by their indices; ``tokens`` are the true ones."""
        if self.loaded.model.value_head is not None:
            return self._by_value_head(steps, numbers)
        if self.support is not None:
            return self._by_support(steps, numbers, tokens)
        return self._by_path(steps, numbers, tokens)

    def _by_value_head(self, steps: DecodingStates, numbers: Ints) -> Predicted:
        """Predict with the distribution of a value head."""
        reading = self.reader.read(steps, keep_logits=splits_numbers(self.loaded.codec.scheme))
        parts = self._raw.distributions(reading, self._calibrated(numbers))
        return self._table(reading, self._scores(numbers, parts))

    def _by_support(self, steps: DecodingStates, numbers: Ints, tokens: Ints) -> Predicted:
        """Predict with the probabilities of all numbers that the scheme represents."""
        reading = self.reader.read(steps, keep_logits=True)
        token_nll = _per_token(self.reader.score(steps.true(), tokens), tokens)
        scores = self._scores(numbers, self._raw.distributions(reading, ()))
        return self._table(reading, scores | {"token_nll": token_nll})

    def _by_path(self, steps: DecodingStates, numbers: Ints, tokens: Ints) -> Predicted:
        """Predict the decoded tokens: only the probability of single token sequences is known, and
        no more of the distribution than draws from it."""
        reading = self.reader.read(steps)
        log_mass = self.reader.score(steps.true(), tokens)
        density = self._path_density(log_mass, tokens)
        drawn = [(slice(None), self._drawn(steps, numbers))] if self.draws else []
        scores = self._scores(numbers, drawn) | {
            "token_nll": _per_token(log_mass, tokens),
            "log_density": density,
            "log_density_tailed": density,
        }
        return self._table(reading, scores)

    def _scores(
        self, numbers: Ints, parts: Iterable[tuple[slice | Ints, Predictive]]
    ) -> dict[str, Floats]:
        """Score the true values of numbers under their distributions, given a part at a time.

        ``values`` are the points that the options ask for; whatever has no value is NaN.
        """
        truth, half = self.samples.numbers[numbers], self._resolutions[numbers] / 2
        found = {name: np.full(len(numbers), np.nan) for name in _SCORES}
        found["quantiles"] = np.full((len(numbers), len(QUANTILES)), np.nan)
        for part, predictive in parts:
            of = truth[part]
            log_density = found["log_density"][part] = predictive.log_density(of)
            if (tailed := self._tailed(predictive)) is not None:
                same = tailed is predictive
                found["log_density_tailed"][part] = log_density if same else tailed.log_density(of)
                found["log_interval"][part] = tailed.log_recorded(of, half[part])
            found["crps"][part], found["pit"][part] = predictive.crps(of), predictive.cdf(of)
            found["quantiles"][part] = predictive.quantiles(QUANTILES)
            if not self._is_written:
                found["values"][part] = getattr(predictive, self.options.point)()
        return found

    def _table(self, reading: NumberReadings, scores: Mapping[str, Floats]) -> Predicted:
        """Return what was decoded, or the points of the distributions, with their scores."""
        values, literals, valid = self._raw.values(reading)
        if not self._is_written:
            values = scores["values"]
            literals, finite = self._raw.literals(values), np.isfinite(values)
            # A value head cannot output NaN or overflow: its token decides whether it is a number.
            valid = finite if self.loaded.model.value_head is None else finite & valid
        literals[~valid] = None
        values[~valid] = np.nan
        columns: dict[str, Any] = {**scores, "values": values, "literals": literals}
        return Predicted(**columns, valid=valid, on_grammar=reading.on_grammar)

    def _tailed(self, exact: Predictive) -> Predictive | None:
        """With stated tails where it has ends; None where it is not known how probable they are."""
        head, model = self.loaded.model.head, self.loaded.model
        if not isinstance(head, ValueHead) or not head.bounded:
            return exact
        if self._learnt_from is None:
            return None
        if isinstance(exact, Multiples):  # it is the mantissa that the head holds in a range
            tailed = with_tails(exact.mantissa, model.scaling, self._learnt_from)
            return exact if tailed is exact.mantissa else replace(exact, mantissa=tailed)
        return with_tails(exact, self._raw.scaling, self._learnt_from)

    @property
    def _is_written(self) -> bool:
        """True if predictions are the tokens or digits that the model writes."""
        return self.options.point == "mode" and default_point(self.loaded.model.head) == "mode"

    @property
    def _only_path(self) -> bool:
        """Whether only the probability of one token sequence can be had, not that of all."""
        return self.loaded.model.value_head is None and self.support is None

    def _calibrated(self, numbers: Ints) -> Iterator[tuple[Ints, Calibration]]:
        """Numbers that share a calibration, by their places among those given."""
        usual = self.loaded.trained.calibration
        if not self.spreads:
            yield np.arange(len(numbers)), usual
            return
        names = self._names[numbers]
        for name in sorted(set(names.tolist())):
            yield np.flatnonzero(names == name), self.spreads.get(name, usual)

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        return number_names(self.samples)

    def _path_density(self, log_mass: Floats, tokens: Ints) -> Floats:
        """The probability of the truth's own tokens, spread over the interval they stand for.

        NaN where the tokens stand for one value alone (``digits``): there it is no density.
        """
        densities = np.full(len(tokens), np.nan)
        scheme, normalizer = self.loaded.codec.scheme, self.loaded.codec.normalizer
        if scheme.tokens_per_number is None:
            return densities
        for index, path in enumerate(tokens.tolist()):
            low, high = normalizer.inverse(np.array(scheme.interval(tuple(path))))
            atom = low == high or not np.isfinite(high - low)
            densities[index] = log_mass[index] - (0.0 if atom else np.log(high - low))
        return densities

    def _drawn(self, steps: DecodingStates, numbers: Ints) -> Predictive:
        """Numbers drawn from the model, again and again."""
        draws = []
        for draw in range(self.draws):
            reading = self.reader.read(steps, partial(uniforms, numbers, 0, "draws", draw))
            values, _, valid = self._raw.values(reading)
            draws.append(np.where(valid, values, np.nan))
        return Drawn(np.column_stack(draws))

    def _true_tokens(self, batch: Batch, chosen: Bools) -> Ints:
        """int64[a, W]: the local ids of the chosen numbers as encoded, -1 behind the end."""
        lengths = batch.number_length[chosen]
        columns = np.arange(int(lengths.max(initial=1)))
        inside = columns < lengths[:, None]
        tokens = np.full(inside.shape, -1, np.int64)
        places = positions(batch.number_row[chosen], batch.number_start[chosen], lengths)
        tokens[inside] = batch.tokens[places] - self.loaded.codec.number_first
        return tokens


def _per_token(log_mass: Floats, tokens: Ints) -> Floats:
    """Return the negative log-likelihood of each number's tokens, per token."""
    nll: Floats = -log_mass / np.count_nonzero(tokens >= 0, axis=1)
    return nll
