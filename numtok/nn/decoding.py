"""Numbers out of a model: token by token, by the scheme's grammar or free of it.

Whatever the objective, reading ``n`` numbers is the same loop; what differs is
how the hidden state that predicts a number's next token is come by:

- :class:`Parallel`: all tokens of a masked number at once (as in the xVal paper);
- :class:`LeftToRight`: a masked number token by token, each filled in before the
  next is read, with one pass over the rows a token;
- :class:`Autoregressive`: a number after the text before it, with a cache of keys
  and values.

Token ids are those of the whole vocabulary here, and local ones in ``Grammar``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.codec import Codec
from numtok.grammar import Grammar
from numtok.nn.batches import Batch
from numtok.nn.model import Given, Model
from numtok.nn.objectives.base import MASK, Example, masked, moved
from numtok.nn.transformer import Cache

LONGEST = 64  # tokens of a number where nothing says how many


class Steps(ABC):
    """The hidden states [n, D] that predict the tokens of ``n`` numbers, one after the other."""

    #: How many tokens each number has, where the number of masks says so; int64[n].
    lengths: NDArray[np.int64] | None

    @abstractmethod
    def first(self) -> Tensor:
        """The states that predict each number's first token."""

    @abstractmethod
    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        """The states that predict what follows, now that these tokens [n] stand there.

        ``values`` [n] go in beside the tokens; 1 where there is none.
        """


class Parallel(Steps):
    """The chosen numbers (bool[M]) of a batch masked, and all read from one pass."""

    def __init__(self, model: Model, batch: Batch, chosen: NDArray[np.bool_]) -> None:
        self._rows, self._starts, self.lengths = _chosen(batch, chosen)
        example = masked(batch, batch.number_tokens(chosen))
        self._hidden = _hidden(model, example)
        self._place = 0

    def first(self) -> Tensor:
        return self._at(self._starts)

    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        self._place += 1
        assert self.lengths is not None
        return self._at(self._starts + np.minimum(self._place, self.lengths - 1))

    def _at(self, columns: NDArray[np.int64]) -> Tensor:
        return self._hidden[torch.from_numpy(self._rows), torch.from_numpy(columns)]


class LeftToRight(Steps):
    """As :class:`Parallel`, but each token is put into the rows before the next is read."""

    def __init__(self, model: Model, batch: Batch, chosen: NDArray[np.bool_]) -> None:
        self._model = model
        self._rows, self._starts, self.lengths = _chosen(batch, chosen)
        self._example = masked(batch, batch.number_tokens(chosen))
        self._place = 0

    def first(self) -> Tensor:
        return self._read()

    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        assert self.lengths is not None
        open_ = self._place < self.lengths
        rows, columns = self._rows[open_], self._starts[open_] + self._place
        self._example.tokens[rows, columns] = tokens[open_]
        self._example.values[rows, columns] = values[open_]
        self._place += 1
        return self._read()

    def _read(self) -> Tensor:
        assert self.lengths is not None
        columns = self._starts + np.minimum(self._place, self.lengths - 1)
        hidden = _hidden(self._model, self._example)
        return hidden[torch.from_numpy(self._rows), torch.from_numpy(columns)]


class Autoregressive(Steps):
    """One number of each row of a batch, after the row's own tokens before it.

    ``starts`` int64[n]: the number's first token in each of the ``n`` rows.
    """

    def __init__(self, model: Model, batch: Batch, starts: NDArray[np.int64], room: int) -> None:
        self._model = model
        tokens, values = moved(batch)
        longest = int(starts.max(initial=0)) + 1
        self._tokens, self._values = tokens[:, :longest], values[:, :longest]
        self._starts = torch.from_numpy(starts)
        # What stands behind the prompt is read too, and then written over.
        context = min(longest + room, model.settings.shape.context)
        like = next(model.parameters())
        self._cache = Cache(model.settings.shape, len(starts), context, like)
        self.lengths = None

    def first(self) -> Tensor:
        device = self._cache.length.device
        hidden = self._model.extend(
            torch.from_numpy(self._tokens).to(device),
            torch.from_numpy(self._values).to(device),
            self._cache,
            (self._starts + 1).to(device),
        )
        return hidden[torch.arange(len(hidden)), self._starts]

    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        device = self._cache.length.device
        one = torch.ones(len(tokens), dtype=torch.int64, device=device)
        hidden = self._model.extend(
            torch.from_numpy(tokens)[:, None].to(device),
            torch.from_numpy(values)[:, None].to(device),
            self._cache,
            one,
        )
        return hidden[:, 0]


@dataclass(frozen=True, eq=False)
class Reading:
    """``n`` numbers as read from a model; a number of W tokens at most."""

    tokens: NDArray[np.int64]  # [n, W], local ids, -1 behind a number's end
    on_grammar: NDArray[np.bool_]  # [n] every token was the most probable of the whole vocabulary
    logits: NDArray[np.float32]  # [n, W, number tokens]
    parameters: NDArray[np.float32] | None  # [n, P] of the value head

    @property
    def lengths(self) -> NDArray[np.int32]:
        """int32[n], 0 where no number was read."""
        lengths: NDArray[np.int32] = (self.tokens >= 0).sum(axis=1, dtype=np.int32)
        return lengths


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads numbers from a model.

    constrained
        Only what the grammar allows.
    longest
        Tokens after which a number that has not ended is none, where neither the scheme nor the
        number of masks says how many it has.
    """

    model: Model
    codec: Codec
    grammar: Grammar
    constrained: bool
    longest: int = LONGEST

    @torch.no_grad()
    def read(
        self,
        steps: Steps,
        given: NDArray[np.int64] | None = None,
        random: np.random.Generator | None = None,
    ) -> Reading:
        """The most probable token each time; drawn by its probability with ``random``.

        ``given`` int64[n, W], local ids, -1 behind the end: those tokens instead, to score them.
        """
        state = steps.first()
        n = len(state)
        parameters, inputs = self._values(state)
        fixed = self.codec.scheme.tokens_per_number
        limit = fixed or self.longest
        if given is not None:
            limit = given.shape[1]
        elif steps.lengths is not None:
            limit = int(steps.lengths.max(initial=0))
        going, on_grammar = np.ones(n, np.bool_), np.ones(n, np.bool_)
        prefixes: list[tuple[int, ...]] = [()] * n
        taken, kept = [], []
        for place in range(limit):
            if steps.lengths is not None:
                going &= place < steps.lengths
            scores = self.model.token_head(state).float().cpu().numpy()
            kept.append(scores[:, self._first : self._end].copy())  # not a view of all
            if given is not None:
                local = given[:, place]
            else:
                local, usual = self._choose(scores, prefixes, random)
                on_grammar &= usual | ~going
            local = np.where(going, local, -1)
            going = local >= 0
            taken.append(local)
            prefixes = [
                (*prefix, token) if token >= 0 else prefix
                for prefix, token in zip(prefixes, local.tolist(), strict=True)
            ]
            if not going.any() or place + 1 == limit:
                break
            state = steps.next(np.where(going, local + self._first, MASK), inputs)
            inputs = np.ones(n, np.float32)
        tokens = np.stack(taken, axis=1)
        if fixed is None and steps.lengths is None and given is None:
            tokens[going] = -1  # a number that does not end is none
        return Reading(tokens, on_grammar, np.stack(kept, axis=1), parameters)

    @property
    def _first(self) -> int:
        return self.codec.number_first

    @property
    def _end(self) -> int:
        return self.codec.text_first

    def _values(self, state: Tensor) -> tuple[NDArray[np.float32] | None, NDArray[np.float32]]:
        """What the value head says, and what goes in beside each number's first token."""
        ones = np.ones(len(state), np.float32)
        if self.model.value_head is None:
            return None, ones
        parameters = self.model.value_head(state).float().cpu().numpy()
        if not self.codec.scheme.channel:
            return parameters, ones
        return parameters, self.model.value_point(parameters).astype(np.float32)

    def _choose(
        self,
        scores: NDArray[np.float32],
        prefixes: list[tuple[int, ...]],
        random: np.random.Generator | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The next local token of each number, -1 for its end; and whether that is what the model
        would have said without a grammar."""
        free = scores.argmax(axis=1)
        allowed = np.ones(scores.shape, np.bool_)
        if self.constrained:
            tokens, may_end = self.grammar.allowed(prefixes)
            allowed[:] = may_end[:, None]  # what is no number token ends the number
            allowed[:, self._first : self._end] = tokens
        scored = np.where(allowed, scores, -np.inf)
        if random is not None:
            # Gumbel's trick: the largest of logits with such noise is a draw by probability.
            scored = scored + random.gumbel(size=scored.shape)
        chosen = scored.argmax(axis=1)
        number = (chosen >= self._first) & (chosen < self._end)
        return np.where(number, chosen - self._first, -1), chosen == free


def _chosen(
    batch: Batch, chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return batch.number_row[chosen], batch.number_start[chosen], batch.number_length[chosen]


@torch.no_grad()
def _hidden(model: Model, example: Example) -> Tensor:
    device = next(model.parameters()).device
    given = Given.of(example, device)
    return model.hidden(given.tokens, given.values, given.real)
