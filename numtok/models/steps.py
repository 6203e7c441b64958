"""The hidden states from which numbers are predicted, token by token.

The loop that predicts ``n`` numbers is the same for every objective (``models.decoding``).
Objectives differ in how they compute the state that predicts a number's next token:

- :class:`ParallelFill` computes the states of all tokens of a number in one pass, as in the xVal
  paper.
- :class:`SequentialFill` fills in a masked number token by token, with one pass over the rows per
  token.
- :class:`Autoregressive` generates a number after the text before it, with a cache of keys and
  values. :class:`Prefill` reads the rows once for all of their numbers.

States stay on the model's device. The same numbers can be predicted repeatedly; results that do not
depend on the chosen tokens are computed only once.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.arrays import ranges
from numtok.encoding.schemes.base import Channel
from numtok.models.batches import Batch, flush_right
from numtok.models.inputs import moved, single
from numtok.models.model import Model
from numtok.models.training_batch import TrainingBatch, masked_batch, shift_right
from numtok.models.trunks.base import TrunkCache


def compile_passes(model: Model) -> None:
    """Use ``torch.compile`` to compile the forward passes that predict numbers.

    The compiled passes accept any number of rows and tokens, and return the same states up to
    rounding. CUDA graphs are not used, because a pass writes into its cache. Do not call this
    function for models on CPUs, where compilation is not worthwhile (docs/results).
    """
    model.hidden = torch.compile(model.hidden, dynamic=True)  # type: ignore[method-assign]
    model.extend = torch.compile(model.extend, dynamic=True)  # type: ignore[method-assign]
    written = torch.compile(model.extend_written, dynamic=True)
    model.extend_written = written  # type: ignore[method-assign]


class DecodingStates(ABC):
    """Interface to the hidden states [n, D] from which ``n`` numbers are predicted in parallel, one
    token of each number at a time."""

    #: int64[n]: the number of tokens of each number, if the masks determine it.
    lengths: NDArray[np.int64] | None

    @abstractmethod
    def first(self) -> Tensor:
        """Return the states [n, D] that predict the first token of each number.

        This restarts the prediction with all ``n`` numbers.
        """

    @abstractmethod
    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        """Return the states that predict the next token of each number, after the chosen ``tokens``
        [n].

        ``values`` [n] are the input values of the chosen tokens; 1 for tokens without a value.
        """

    @abstractmethod
    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Keep only the given numbers (int64[k], indices into the current numbers)."""

    def true(self) -> "DecodingStates":
        """Return decoding states for teacher forcing, where only true tokens are passed to
        :meth:`next`.

        The hidden states may come from one earlier pass over all tokens.
        """
        return self


class ParallelFill(DecodingStates):
    """Decoding states of numbers whose tokens are all predicted in one pass, independently of one
    another."""

    def __init__(self, states_TD: Tensor, lengths: NDArray[np.int64]) -> None:
        """Create the decoding states of numbers with the given ``lengths`` in tokens.

        ``states_TD`` contains the states of all tokens, number after number."""
        self._states_TD = states_TD
        self.lengths: NDArray[np.int64] = lengths
        self._begin = np.cumsum(lengths) - lengths
        self._open = np.arange(len(lengths))
        self._place = 0

    @classmethod
    def masked(cls, model: Model, batch: Batch, chosen: NDArray[np.bool_]) -> "ParallelFill":
        """Mask the chosen numbers (bool[M]) of a batch, and return their decoding states."""
        example = masked_batch(batch, batch.number_tokens(chosen))
        return cls(_states(model, example), batch.number_length[chosen])

    def part(self, numbers: slice) -> "ParallelFill":
        """Return the decoding states of a slice of the numbers."""
        lengths = self.lengths[numbers]
        first = int(self._begin[numbers][0])
        return ParallelFill(self._states_TD[first : first + int(lengths.sum())], lengths)

    def first(self) -> Tensor:
        self._open, self._place = np.arange(len(self.lengths)), 0
        return self._read()

    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        self._place += 1
        return self._read()

    def keep(self, numbers: NDArray[np.int64]) -> None:
        self._open = self._open[numbers]

    def _read(self) -> Tensor:
        places = self._begin + np.minimum(self._place, self.lengths - 1)
        return self._states_TD[moved(places[self._open], self._states_TD.device)]


class SequentialFill(DecodingStates):
    """Decoding states of masked numbers: each predicted token is put into the rows before the next
    token is predicted."""

    def __init__(self, model: Model, batch: Batch, chosen: NDArray[np.bool_]) -> None:
        self._model = model
        self._example = masked_batch(batch, batch.number_tokens(chosen))
        self._rows, self._starts = batch.number_row[chosen], batch.number_start[chosen]
        self.lengths: NDArray[np.int64] = batch.number_length[chosen]
        self._open = np.arange(len(self._rows))
        self._place = 0
        self._first: Tensor | None = None
        self._tokens, self._values = self._example.tokens, self._example.values

    def first(self) -> Tensor:
        self._open, self._place = np.arange(len(self._rows)), 0
        self._tokens, self._values = self._example.tokens.copy(), self._example.values.copy()
        if self._first is None:
            self._first = self._read()
        return self._first

    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        going = self._place < self.lengths[self._open]
        rows, columns = self._rows[self._open], self._starts[self._open] + self._place
        self._tokens[rows[going], columns[going]] = tokens[going]
        self._values[rows[going], columns[going]] = values[going]
        self._place += 1
        return self._read()

    def keep(self, numbers: NDArray[np.int64]) -> None:
        self._open = self._open[numbers]

    def _read(self) -> Tensor:
        """Return one state per number; rows whose numbers have all ended are skipped."""
        places = self._starts + np.minimum(self._place, self.lengths - 1)
        rows, row = np.unique(self._rows[self._open], return_inverse=True)
        where = row * self._tokens.shape[1] + places[self._open]
        example = TrainingBatch(
            tokens=self._tokens[rows],
            values=self._values[rows],
            real=self._example.real[rows],
            where=where,
        )
        return _states(self._model, example)


class Prefill:
    """Pass of an autoregressive model over the rows of a batch, shared by all of their numbers.

    Each number is predicted after its true preceding text, so one pass over a row is enough for
    all of its numbers. The same pass also provides the predictions after the true tokens of each
    number.
    """

    def __init__(
        self,
        model: Model,
        batch: Batch,
        chosen: NDArray[np.bool_],
        room: int,
        cache: TrunkCache | None = None,
    ) -> None:
        """Read a batch to predict its chosen numbers (bool[M]), of up to ``room`` tokens each.

        The new cache reuses the memory of ``cache``, the cache of an earlier batch. If ``room`` is
        1, nothing is cached, because nothing is predicted after the first token.
        """
        self.model = model
        self.rows, self.starts = batch.number_row[chosen], batch.number_start[chosen]
        lengths = batch.number_length[chosen]
        longest = int((self.starts + lengths).max(initial=1))
        tokens, values = shift_right(batch)
        tokens, values = tokens[:, :longest], values[:, :longest]
        where = self.rows * longest + self.starts
        example = TrainingBatch(
            tokens=tokens,
            values=values,
            real=np.ones_like(tokens, np.bool_),  # tokens after the end of a row have no effect
            where=ranges(where, lengths),
        )
        self.room = room
        self.cache: TrunkCache | None = None
        if room > 1:
            self.cache = model.cached_trunk.cache(len(tokens), longest + room, cache)
        self._tokens = tokens
        self.true = ParallelFill(_states(model, example, self.cache), lengths)
        if self.cache is not None:
            everything = torch.full((len(tokens),), longest, device=self.cache.length.device)
            self.cache.rewind(everything, longest)

    def steps(self, numbers: slice) -> DecodingStates:
        """Return the decoding states of a slice of the chosen numbers."""
        true = self.true.part(numbers)
        if self.cache is None:
            return true
        rows, starts = self.rows[numbers], self.starts[numbers]
        # [END] comes first, so start + 1 tokens precede the token at ``start``.
        base = self.cache
        if len(rows) < len(self.rows) or not np.array_equal(rows, np.arange(base.rows)):
            # Several numbers share a row; otherwise each is written into its own row, over the true
            # text.
            tokens = min(int(starts.max()) + 1 + self.room, base.tokens)
            base = base.take(moved(rows, base.length.device), tokens)
        before = flush_right(self._tokens[rows], starts + 1)
        return Autoregressive(self.model, true, base, starts + 1, before)


class Autoregressive(DecodingStates):
    """Decoding states of numbers that an autoregressive model generates token by token.

    Each number follows its true preceding text, and each token is predicted from the tokens chosen
    before it. ``length`` int64[n] is the number of preceding tokens in the cache; ``before``
    int64[n, T] contains these tokens, padded on the left.
    """

    lengths = None

    def __init__(
        self,
        model: Model,
        true: ParallelFill,
        base: TrunkCache,
        length: NDArray[np.int64],
        before: NDArray[np.int64],
    ) -> None:
        self._model = model
        self._true = true
        self._base = self._cache = base
        self._prompts = self._before = before
        self._length, self._longest = moved(length, base.length.device), int(length.max())
        self._latest: Tensor | None = None  # the states that predict the next tokens

    def first(self) -> Tensor:
        self._cache = self._base
        self._cache.rewind(self._length, self._longest)
        self._before = self._prompts
        # The first state does not depend on the number's own tokens.
        self._latest = self._true.first()
        return self._latest

    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        assert self._latest is not None
        device = self._cache.length.device
        self._latest = self._model.extend_written(
            moved(tokens, device),
            moved(single(values), device),
            self._cache,
            self._latest,
            self._model.of_host(tokens[:, None], values[:, None], self._before),
        )
        self._before = np.concatenate([self._before, tokens[:, None]], axis=1)
        return self._latest

    def keep(self, numbers: NDArray[np.int64]) -> None:
        cache, at = self._cache, moved(numbers, self._cache.length.device)
        self._cache = cache.take(at, cache.tokens)
        self._before = self._before[numbers]
        if self._latest is not None:
            self._latest = self._latest[at]

    def true(self) -> DecodingStates:
        # States after a true token that depends on later tokens have seen the number; those after a
        # generated one have not. They are computed step by step.
        return self if self._model.replaces_numbers else self._true


@torch.no_grad()
def _states(model: Model, example: TrainingBatch, cache: TrunkCache | None = None) -> Tensor:
    """Return [K, D]: the states at predicted positions; rows are added to the cache, if given."""
    inputs = model.given(example)
    if cache is None:
        hidden = model.states_of(inputs)
    else:
        hidden = model.extend(inputs.tokens, inputs.values, cache, inputs.asked, inputs.of_host)
    return inputs.predicting(hidden)
