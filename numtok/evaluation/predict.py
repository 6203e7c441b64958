"""A model's predictions for the numbers in a split, computed in batches.

The model predicts the targets of each row, or every number if the row has no targets. A masked
model predicts the targets of a row together; without targets, it predicts each number separately,
from all other numbers. An autoregressive model predicts each number from the true text before it,
in a single pass over the row.

Predictions do not depend on the batch size, because the random samples for a number depend only on
the number. Only the last bits of floating-point sums may differ, because a device may sum in a
different order.
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
    """Options for decoding numbers.

    fill
        Order of decoding: ``parallel``, ``left-to-right`` or ``autoregressive``.
    constrained
        True to decode only tokens that the scheme's grammar allows. Otherwise, the most probable
        tokens are decoded.
    point
        Point prediction. ``mode`` is the value with the highest density in raw units, or the result
        of greedy decoding of tokens and digits. ``median`` and ``mean`` are the median and mean of
        the predictive distribution.
    draws
        Number of samples that approximate the distribution if it has no exact form, for example
        because numbers are decoded token by token.
    batch
        Maximum number of rows per forward pass, and of numbers decoded at a time. Batches of long
        rows are smaller.
    """

    measures: ClassVar[Measures] = "numbers"
    fill: str
    constrained: bool
    point: str
    draws: int
    batch: int


class Predicted(NamedTuple):
    """Predictions for a set of numbers, with their scores. Each field is a column of length ``a``,
    the number of numbers. Undefined scores are NaN."""

    values: Floats  # in raw units, NaN if invalid
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
    """Predicts the numbers of a split with one model and one set of options.

    train_count
        Number of numbers in the model's train split; None if unknown. It determines the probability
        of values outside the range of a bounded head (see ``distributions.tailed``).
    calibrations
        Calibration of the head for each target name. Other targets use the calibration from
        training.
    """

    def __init__(
        self,
        loaded: AskedModel,
        samples: EncodedSplit,
        options: Options,
        train_count: int | None = None,
        calibrations: Mapping[str, Calibration] | None = None,
    ) -> None:
        self.loaded = loaded
        self._train_count = train_count
        self.calibrations = calibrations or {}
        self.samples = samples
        self.options = options
        codec = loaded.codec
        self.batches = Batches(samples, learnt_values(samples, codec), options.batch)
        self.grammar = Grammar(codec.scheme)
        # Without another limit, a number may be as long as the longest true one.
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
        self._in_answer = samples.in_answer
        self._cache: TrunkCache | None = None  # reused by all batches
        self.room = BatchSizer.of(loaded.model, options.batch)
        one_pass = options.fill == PARALLEL or codec.scheme.tokens_per_number == 1
        #: All numbers that the scheme represents, if one forward pass gives their probabilities.
        self.support = listed(codec, loaded.model, self.grammar) if one_pass else None
        self.raw = RawNumbers(codec, loaded.model, self.support)
        if options.point != "mode" and not self.has_distribution:
            raise UsageError(
                f"--point {options.point} needs a predictive distribution, which this model does "
                f"not have with {options.fill} decoding. Add --num-samples 64, or use --point mode"
            )

    @property
    def draws(self) -> int:
        """Number of samples per distribution; 0 if the distribution has an exact form."""
        return self.options.draws if self._only_path else 0

    @property
    def has_distribution(self) -> bool:
        """True if predictive distributions have a known mean and known quantiles, not only a
        density."""
        return not self._only_path or self.draws > 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the constructor's arguments to worker processes."""
        arguments = self.loaded, self.samples, self.options, self._train_count, self.calibrations
        return Predictor, arguments

    def run(self, progress: Done, note: Note, devices: Devices = ONE) -> Predicted:
        """Predict all numbers, in the order of :attr:`asked`.

        If memory runs out, the number of tokens per batch is halved, repeatedly if necessary.
        Raises TrainingFailed if not even a single row fits.
        """
        parts, order, done = [], [], 0
        for _, (indices, part) in devices.batches(self, note):
            parts.append(part)
            order.append(indices)
            done += len(indices)
            progress(done, len(self.asked.numbers))
        inverse = np.argsort(np.concatenate(order))
        return Predicted(*(np.concatenate(column)[inverse] for column in zip(*parts, strict=True)))

    def answers(self, queries: Ints) -> tuple[Ints, Predicted]:
        """Predict the numbers of the queries with the indices ``queries``, int64[k].

        Returns the indices of these numbers in :attr:`asked`, and their predictions.
        """
        indices, batch, chosen, inverse = self._batch(queries)
        tokens, numbers = self._true_tokens(batch, chosen), batch.number[chosen]
        parts = [
            self._predicted(steps, numbers[part], tokens[part])
            for part, steps in self._steps(batch, chosen)
        ]
        columns = zip(*parts, strict=True)
        return indices, Predicted(*(np.concatenate(column)[inverse] for column in columns))

    def forget(self) -> None:
        """Release the cache that is kept between batches."""
        self._cache = None

    @cached_property
    def lengths(self) -> Ints:
        """Number of tokens that the model reads for each query, int64[q]."""
        if self.options.fill != AUTOREGRESSIVE:
            return self.samples.lengths[self.asked.rows]
        ends = self.samples.number_start.astype(np.int64) + self.samples.number_length
        last = np.searchsorted(self.asked.queries, np.arange(len(self.asked.rows)), "right") - 1
        return ends[self.asked.numbers[last]]

    def _batch(self, queries: Ints) -> tuple[Ints, Batch, Bools, Ints]:
        """Return the batch of the given queries.

        Returns indices of the queried numbers in :attr:`asked`, the rows as a batch, a mask of the
        batch's numbers that are queried, and the index of each queried number among these. A number
        may be queried twice, because it may be two targets.
        """
        first, end = np.searchsorted(self.asked.queries, [queries, queries + 1])
        indices, batch = ranges(first, end - first), self.batches.of(self.asked.rows[queries])
        # A row may occur several times, once for each of its numbers.
        many = len(self.samples.numbers)
        row = np.repeat(np.arange(len(queries)), end - first)
        wanted = row * many + self.asked.numbers[indices]
        every = batch.number_row * many + batch.number
        chosen = np.isin(every, wanted)
        return indices, batch, chosen, np.searchsorted(every[chosen], wanted)

    def parts(self) -> Iterator[Ints]:
        """Yield the indices of all queries, int64[k] for each batch, in batches that fit in
        memory."""
        size = self.room.rows(self.samples.longest)
        for begin in range(0, len(self.asked.rows), size):
            yield np.arange(begin, min(begin + size, len(self.asked.rows)))

    def passes(self, queries: Ints) -> Iterator[tuple[Ints, DecodingStates]]:
        """Yield blocks of queried numbers, as indices [n] in the split, with the model's decoding
        states.

        Decoding states give access to more of the model's output than predictions do, for example
        to calibrate a head.
        """
        _, batch, chosen, _ = self._batch(queries)
        for part, steps in self._steps(batch, chosen):
            yield batch.number[chosen][part], steps

    def _steps(self, batch: Batch, chosen: Bools) -> Iterator[tuple[slice, DecodingStates]]:
        """Yield the decoding states of the chosen numbers, in blocks if numbers are independent."""
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
        """Predict the numbers with the indices ``numbers`` in the split. ``tokens`` are their true
        tokens."""
        if self.loaded.model.value_head is not None:
            return self._by_value_head(steps, numbers)
        if self.support is not None:
            return self._by_support(steps, numbers, tokens)
        return self._by_path(steps, numbers, tokens)

    def _by_value_head(self, steps: DecodingStates, numbers: Ints) -> Predicted:
        """Predict with the distribution of a value head."""
        reading = self.reader.read(steps, keep_logits=splits_numbers(self.loaded.codec.scheme))
        in_answer = self._in_answer[numbers]
        parts = self.raw.distributions(reading, self._calibrated(numbers), in_answer)
        return self._table(reading, self._scores(numbers, parts), in_answer)

    def _by_support(self, steps: DecodingStates, numbers: Ints, tokens: Ints) -> Predicted:
        """Predict with the probabilities of all numbers that the scheme represents."""
        reading = self.reader.read(steps, keep_logits=True)
        token_nll = _per_token(self.reader.score(steps.true(), tokens), tokens)
        scores = self._scores(numbers, self.raw.distributions(reading, ()))
        return self._table(reading, scores | {"token_nll": token_nll}, self._in_answer[numbers])

    def _by_path(self, steps: DecodingStates, numbers: Ints, tokens: Ints) -> Predicted:
        """Predict by decoding tokens.

        The distribution is known only from the probabilities of individual token sequences and from
        samples.
        """
        reading = self.reader.read(steps)
        log_mass = self.reader.score(steps.true(), tokens)
        density = self._path_log_density(log_mass, tokens)
        drawn = [(slice(None), self._drawn(steps, numbers))] if self.draws else []
        scores = self._scores(numbers, drawn) | {
            "token_nll": _per_token(log_mass, tokens),
            "log_density": density,
            "log_density_tailed": density,
        }
        return self._table(reading, scores, self._in_answer[numbers])

    def _scores(
        self, numbers: Ints, parts: Iterable[tuple[slice | Ints, Predictive]]
    ) -> dict[str, Floats]:
        """Score the true values of numbers under their distributions, given in parts.

        ``values`` are the point predictions. Undefined scores are NaN.
        """
        truth, half = self.samples.numbers[numbers], self._resolutions[numbers] / 2
        scores = {name: np.full(len(numbers), np.nan) for name in _SCORES}
        scores["quantiles"] = np.full((len(numbers), len(QUANTILES)), np.nan)
        for part, predictive in parts:
            targets = truth[part]
            log_density = scores["log_density"][part] = predictive.log_density(targets)
            # All numbers of a part are in answers, or none, unless normalization ignores it.
            in_answer = bool(self._in_answer[numbers][part].any())
            if (tailed := self._tailed(predictive, in_answer)) is not None:
                same = tailed is predictive
                scores["log_density_tailed"][part] = (
                    log_density if same else tailed.log_density(targets)
                )
                scores["log_interval"][part] = tailed.log_recorded(targets, half[part])
            scores["crps"][part] = predictive.crps(targets)
            scores["pit"][part] = predictive.cdf(targets)
            scores["quantiles"][part] = predictive.quantiles(QUANTILES)
            if not self._is_written:
                scores["values"][part] = getattr(predictive, self.options.point)()
        return scores

    def _table(
        self, reading: NumberReadings, scores: Mapping[str, Floats], in_answer: Bools
    ) -> Predicted:
        """Return the decoded numbers, or the point predictions of the distributions, with their
        scores."""
        values, literals, valid = self.raw.values(reading, in_answer)
        if not self._is_written:
            values = scores["values"]
            literals, finite = self.raw.literals(values), np.isfinite(values)
            # A value head cannot output NaN or overflow: its token decides whether it is a number.
            valid = finite if self.loaded.model.value_head is None else finite & valid
        literals[~valid] = None
        values[~valid] = np.nan
        columns: dict[str, Any] = {**scores, "values": values, "literals": literals}
        return Predicted(**columns, valid=valid, on_grammar=reading.on_grammar)

    def _tailed(self, exact: Predictive, in_answer: bool) -> Predictive | None:
        """Return the distribution with explicit tails beyond the range of a bounded head.

        Returns None if the probability of the tails is not known.
        """
        head, model = self.loaded.model.head, self.loaded.model
        if not isinstance(head, ValueHead) or not head.bounded:
            return exact
        if self._train_count is None:
            return None
        if isinstance(exact, Multiples):  # only the mantissa is bounded
            tailed = with_tails(exact.mantissa, model.scaling, self._train_count)
            return exact if tailed is exact.mantissa else replace(exact, mantissa=tailed)
        return with_tails(exact, self.raw.scaling(in_answer), self._train_count)

    @property
    def _is_written(self) -> bool:
        """True if predictions are the tokens or digits that the model writes."""
        return self.options.point == "mode" and default_point(self.loaded.model.head) == "mode"

    @property
    def _only_path(self) -> bool:
        """True if only probabilities of individual token sequences are known."""
        return self.loaded.model.value_head is None and self.support is None

    def _calibrated(self, numbers: Ints) -> Iterator[tuple[Ints, Calibration]]:
        """Yield each calibration with the numbers that share it, as indices in ``numbers``."""
        default = self.loaded.trained.calibration
        if not self.calibrations:
            yield np.arange(len(numbers)), default
            return
        names = self._names[numbers]
        for name in sorted(set(names.tolist())):
            yield np.flatnonzero(names == name), self.calibrations.get(name, default)

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        return number_names(self.samples)

    def _path_log_density(self, log_mass: Floats, tokens: Ints) -> Floats:
        """Return the log probability of the true tokens, spread over the interval that they
        represent.

        It is NaN for schemes such as ``digits``, whose tokens represent a single value without a
        density.
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
        """Return the distribution of samples drawn from the model."""
        draws = []
        for draw in range(self.draws):
            reading = self.reader.read(steps, partial(uniforms, numbers, 0, "draws", draw))
            values, _, valid = self.raw.values(reading, self._in_answer[numbers])
            draws.append(np.where(valid, values, np.nan))
        return Drawn(np.column_stack(draws))

    def _true_tokens(self, batch: Batch, chosen: Bools) -> Ints:
        """Return the true tokens of the chosen numbers, int64[a, W] local ids padded with -1."""
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
