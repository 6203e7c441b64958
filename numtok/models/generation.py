"""Whole answers out of an autoregressive model: token by token, until it says that they end.

Here the model writes everything, where ``models.decoding`` reads one number behind the true text
before it. The prompts of a batch are read once, into a cache of keys and values, and then each pass
reads the token that was chosen last. The most probable token is chosen each time, so an answer
depends on its own row alone.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.codec import Codec
from numtok.encoding.grammar import Grammar, Paths
from numtok.encoding.whole_text import in_text
from numtok.models.batches import PAD, Batch, flush_right
from numtok.models.decoding import GrammarMasks
from numtok.models.inputs import moved, single
from numtok.models.model import Model
from numtok.models.training_batch import END, MASK, shift_right
from numtok.models.trunks.base import TrunkCache
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, kw_only=True)
class WrittenAnswers:
    """``n`` answers as a model wrote them, W tokens at most."""

    tokens: NDArray[np.int64]  # [n, W], ids of the whole vocabulary, -1 behind an answer's end
    starts: NDArray[np.bool_]  # [n, W] the first token of a number
    ends: NDArray[np.bool_]  # [n, W] the last token of a number
    values: NDArray[np.float64]  # [n, W] the channel beside a number's first token, else 1
    ended: NDArray[np.bool_]  # [n] the model said so; else it was stopped

    def answer(
        self, row: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """The tokens of an answer, where its numbers begin, how many tokens each has, and the
        channel beside each."""
        tokens = self.tokens[row]
        starts = np.flatnonzero(self.starts[row]).astype(np.int32)
        ends = np.flatnonzero(self.ends[row]).astype(np.int32) + 1
        written = tokens[tokens >= 0].astype(np.uint32)
        return written, starts, ends - starts, self.values[row, starts]


@dataclass(frozen=True, eq=False, kw_only=True)
class Writer:
    """Writes answers.

    constrained
        Every number is one that the scheme writes; else whatever is most probable. Pads and masks
        are never written.
    longest
        Tokens after which an answer that has not ended is stopped; where the context ends it is
        stopped before.
    """

    model: Model
    codec: Codec
    grammar: Grammar
    constrained: bool
    longest: int
    _rules: GrammarMasks = field(init=False)
    _valued: NDArray[np.int64] = field(init=False)  # the tokens that have a value beside them

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rules", GrammarMasks(self.grammar))
        object.__setattr__(self, "_valued", Vocabulary.of(self.codec).numbers)

    @torch.no_grad()
    def write(
        self, batch: Batch, memory: TrunkCache | None = None
    ) -> tuple[WrittenAnswers, TrunkCache]:
        """The answers of the rows, each of which has an ``answer_start``.

        ``memory``, the cache of an earlier batch, gives its memory to this one's, which comes back.
        """
        state, cache = self._read(batch, memory)
        n, whole = len(batch.tokens), cache
        tokens = np.full((n, self.longest), -1)
        begins, values = np.zeros(tokens.shape, np.bool_), np.ones(tokens.shape)
        ended = np.zeros(n, np.bool_)
        room = self.model.settings.context - batch.answer_start
        rows, going = np.arange(n), np.ones(n, np.bool_)  # those gone on with; not yet ended
        numbers = _AnswerNumbers(self.grammar, n)
        before = flush_right(shift_right(batch)[0], batch.answer_start + 1)
        for place in range(self.longest):
            going &= place < room[rows]
            if not going.any():
                break
            if 2 * np.count_nonzero(going) <= len(going):
                still = np.flatnonzero(going)
                at = moved(still, state.device)
                cache, state = cache.take(at, cache.tokens), state[at]
                rows, going, before = rows[still], going[still], before[still]
                numbers.keep(still)
            chosen = self._choose(state, numbers)
            is_number = (chosen >= self.codec.number_first) & (chosen < self.codec.text_first)
            begun = numbers.read(np.where(is_number, chosen - self.codec.number_first, -1))
            beside = self._values(state, begun & np.isin(chosen, self._valued))
            ended[rows[going & (chosen == END)]] = True
            going = going & (chosen != END)
            tokens[rows[going], place] = chosen[going]
            begins[rows[going], place] = begun[going]
            values[rows[going], place] = beside[going]
            if place + 1 < self.longest and going.any():
                state = self.model.extend_written(
                    moved(chosen, state.device),
                    moved(single(beside), state.device),
                    cache,
                    state,
                    self.model.of_host(chosen[:, None], beside[:, None], before),
                )
                before = np.concatenate([before, chosen[:, None]], axis=1)
        inside = (tokens >= self.codec.number_first) & (tokens < self.codec.text_first)
        return WrittenAnswers(
            tokens=tokens,
            starts=begins,
            ends=last_tokens(inside, begins),
            values=values,
            ended=ended,
        ), whole

    def _read(self, batch: Batch, memory: TrunkCache | None) -> tuple[Tensor, TrunkCache]:
        """The states [n, D] that predict each answer's first token; a cache of what is before."""
        tokens, values = shift_right(batch)
        length = batch.answer_start + 1  # [END] comes first
        longest = int(length.max(initial=1))
        # What lies behind is not looked at; nor may a prompt's last number be read on there.
        tokens = np.where(np.arange(longest) < length[:, None], tokens[:, :longest], PAD)
        cache = self.model.cached_trunk.cache(len(tokens), longest + self.longest, memory)
        device = cache.length.device
        hidden = self.model.extend(
            moved(tokens, device),
            moved(single(values[:, :longest]), device),
            cache,
            moved(length - 1, device)[:, None],
            self.model.of_host(tokens, values[:, :longest]),
        )
        cache.rewind(moved(length, device), longest)
        return hidden[:, 0], cache

    def _values(self, state: Tensor, valued: NDArray[np.bool_]) -> NDArray[np.float64]:
        """float64[n]: what goes in beside the tokens chosen, 1 where they have no value."""
        values = np.ones(len(valued))
        if self.model.value_head is not None and valued.any():
            at = moved(np.flatnonzero(valued), state.device)
            parameters = self.model.value_head(state[at].float())
            values[valued] = self.model.channel(parameters)
        return values

    def _choose(self, state: Tensor, numbers: "_AnswerNumbers") -> NDArray[np.int64]:
        """The next token of each answer, of the whole vocabulary."""
        scores = self.model.token_head(state).float()
        for never in (PAD, MASK):  # a list would be copied to the device each time
            scores[:, never] = -torch.inf
        if self.constrained and not in_text(self.codec.scheme):
            first, end = self.codec.number_first, self.codec.text_first
            allowed, may_end = self._rules.of(numbers.paths, scores.device)
            beginning = self._rules.at_first(scores.device)
            inside = moved(numbers.inside, scores.device)
            outside = ~inside | may_end  # a number may begin right behind another
            allowed = allowed | (outside[:, None] & beginning)
            scores[:, first:end].masked_fill_(~allowed, -torch.inf)
            barred = ~outside[:, None]
            scores[:, :first].masked_fill_(barred, -torch.inf)
            scores[:, end:].masked_fill_(barred, -torch.inf)
        chosen: NDArray[np.int64] = scores.argmax(dim=1).cpu().numpy()
        return chosen


def numbers_among(
    tokens: NDArray[np.int64], codec: Codec, grammar: Grammar
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where the numbers begin among tokens [t] that a model wrote, and how many tokens each has."""
    numbers = _AnswerNumbers(grammar, 1)
    inside = (tokens >= codec.number_first) & (tokens < codec.text_first)
    local = np.where(inside, tokens - codec.number_first, -1)
    begins = np.array([numbers.read(one)[0] for one in local[:, None]], np.bool_)
    starts = np.flatnonzero(begins)
    ends = np.flatnonzero(last_tokens(inside, begins)) + 1
    return starts.astype(np.int32), (ends - starts).astype(np.int32)


def last_tokens(inside: NDArray[np.bool_], begins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[..., W]: which tokens are the last ones of numbers, from those inside a number and those
    that begin one."""
    goes_on = np.zeros_like(inside)
    goes_on[..., :-1] = inside[..., 1:] & ~begins[..., 1:]
    return inside & ~goes_on


class _AnswerNumbers:
    """Which number each of ``n`` answers is in, and how far."""

    def __init__(self, grammar: Grammar, n: int) -> None:
        self._grammar = grammar
        self.paths = Paths(grammar, n)
        self.inside = np.zeros(n, np.bool_)  # the last token was one of a number
        self._broken = np.zeros(n, np.bool_)  # of one that the scheme does not write

    def read(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Go on with these local tokens (int64[n], -1 for what is no number). bool[n]: where a
        number begins: after text, and where what came before is whole and cannot go on so."""
        known = tokens >= 0
        states, nothing = self.paths.states(), self._grammar.states([()])
        masks = self._grammar.masks(np.arange(len(self._grammar)))
        goes_on, first = masks[states, tokens], masks[nothing, tokens]
        whole = self._grammar.may_end(states) & first & ~self._broken
        begins = known & (~self.inside | (whole & ~goes_on))
        broken = known & np.where(begins, ~first, self._broken | ~goes_on)
        self.paths.restart(begins | ~known)
        self.paths.extend(np.where(known & ~broken, tokens, -1))
        self.inside, self._broken = known, broken
        return begins

    def keep(self, answers: NDArray[np.int64]) -> None:
        """Go on with these alone."""
        self.paths.keep(answers)
        self.inside, self._broken = self.inside[answers], self._broken[answers]
