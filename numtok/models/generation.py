"""Generation of whole answers by an autoregressive model, token by token.

The model generates every token of an answer, whereas ``models.decoding`` predicts each number after
its true preceding text. The prompts of a batch are read once, into a cache of keys and
values; each further pass reads only the last token. Decoding is greedy, and an answer depends only
on its own row.
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
    """``n`` generated answers with up to W tokens each."""

    tokens: NDArray[np.int64]  # [n, W], ids of the whole vocabulary, -1 after the end of an answer
    starts: NDArray[np.bool_]  # [n, W] the first token of a number
    ends: NDArray[np.bool_]  # [n, W] the last token of a number
    values: NDArray[np.float64]  # [n, W] the value of a number's first token, else 1
    ended: NDArray[np.bool_]  # [n] whether the model ended the answer; else it was truncated

    def answer(
        self, row: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return the tokens of one answer, and the start, length and value of each number in it."""
        tokens = self.tokens[row]
        starts = np.flatnonzero(self.starts[row]).astype(np.int32)
        ends = np.flatnonzero(self.ends[row]).astype(np.int32) + 1
        written = tokens[tokens >= 0].astype(np.uint32)
        return written, starts, ends - starts, self.values[row, starts]


@dataclass(frozen=True, eq=False, kw_only=True)
class Writer:
    """Generator of answers to the prompts in a batch.

    constrained
        Generate only numbers that the scheme can represent. If False, the most probable token is
        always chosen. Padding and mask tokens are never generated.
    longest
        Maximum number of tokens per answer. The end of the model's context may truncate an answer
        earlier.
    """

    model: Model
    codec: Codec
    grammar: Grammar
    constrained: bool
    longest: int
    _rules: GrammarMasks = field(init=False)
    _valued: NDArray[np.int64] = field(init=False)  # the tokens that have a value

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rules", GrammarMasks(self.grammar))
        object.__setattr__(self, "_valued", Vocabulary.of(self.codec).numbers)

    @torch.no_grad()
    def write(
        self, batch: Batch, memory: TrunkCache | None = None
    ) -> tuple[WrittenAnswers, TrunkCache]:
        """Generate answers to the prompts in a batch; every row must have an ``answer_start``.

        Returns the answers and the cache that was used. Pass the cache as ``memory`` with the next
        batch to reuse its memory.
        """
        state, cache = self._read(batch, memory)
        n, whole = len(batch.tokens), cache
        tokens = np.full((n, self.longest), -1)
        begins, values = np.zeros(tokens.shape, np.bool_), np.ones(tokens.shape)
        ended = np.zeros(n, np.bool_)
        room = self.model.settings.context - batch.answer_start
        rows, going = np.arange(n), np.ones(n, np.bool_)  # active answers; those not yet ended
        numbers = _AnswerNumbers(self.grammar, n)
        before = flush_right(shift_right(batch)[0], batch.answer_start + 1)
        for index in range(self.longest):
            going &= index < room[rows]
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
            channel = self._values(state, begun & np.isin(chosen, self._valued))
            ended[rows[going & (chosen == END)]] = True
            going = going & (chosen != END)
            tokens[rows[going], index] = chosen[going]
            begins[rows[going], index] = begun[going]
            values[rows[going], index] = channel[going]
            if index + 1 < self.longest and going.any():
                state = self.model.extend_written(
                    moved(chosen, state.device),
                    moved(single(channel), state.device),
                    cache,
                    state,
                    self.model.of_host(chosen[:, None], channel[:, None], before),
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
        """Return the states [n, D] that predict each answer's first token, and a cache of the
        prompts."""
        tokens, values = shift_right(batch)
        length = batch.answer_start + 1  # [END] comes first
        longest = int(length.max(initial=1))
        # Tokens after a prompt are not read, and must not extend its last number.
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
        """Return float64[n]: the input values of the chosen tokens, 1 if they have none."""
        values = np.ones(len(valued))
        if self.model.value_head is not None and valued.any():
            at = moved(np.flatnonzero(valued), state.device)
            parameters = self.model.value_head(state[at].float())
            values[valued] = self.model.channel(parameters)
        return values

    def _choose(self, state: Tensor, numbers: "_AnswerNumbers") -> NDArray[np.int64]:
        """Return the next token of each answer, an id of the whole vocabulary."""
        scores = self.model.token_head(state).float()
        for never in (PAD, MASK):  # a list would be copied to the device in every step
            scores[:, never] = -torch.inf
        if self.constrained and not in_text(self.codec.scheme):
            first, end = self.codec.number_first, self.codec.text_first
            allowed, may_end = self._rules.of(numbers.paths, scores.device)
            beginning = self._rules.at_first(scores.device)
            inside = moved(numbers.inside, scores.device)
            outside = ~inside | may_end  # a number may directly follow another
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
    """Return the start and the length of each number in one sequence of generated tokens [t]."""
    numbers = _AnswerNumbers(grammar, 1)
    inside = (tokens >= codec.number_first) & (tokens < codec.text_first)
    local = np.where(inside, tokens - codec.number_first, -1)
    begins = np.array([numbers.read(token)[0] for token in local[:, None]], np.bool_)
    starts = np.flatnonzero(begins)
    ends = np.flatnonzero(last_tokens(inside, begins)) + 1
    return starts.astype(np.int32), (ends - starts).astype(np.int32)


def last_tokens(inside: NDArray[np.bool_], begins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[..., W], True for the last token of each number.

    ``inside`` is True for all tokens of numbers, and ``begins`` for the first token of each number.
    """
    goes_on = np.zeros_like(inside)
    goes_on[..., :-1] = inside[..., 1:] & ~begins[..., 1:]
    return inside & ~goes_on


class _AnswerNumbers:
    """Tracks the number that each of ``n`` answers is in, and its state in the grammar."""

    def __init__(self, grammar: Grammar, n: int) -> None:
        self._grammar = grammar
        self.paths = Paths(grammar, n)
        self.inside = np.zeros(n, np.bool_)  # the last token belongs to a number
        self._broken = np.zeros(n, np.bool_)  # that number is not one of the scheme

    def read(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Read local tokens (int64[n], -1 for text); return bool[n]: which tokens start a number.

        A number starts after text, or after a complete number that the token cannot extend.
        """
        is_number = tokens >= 0
        states, nothing = self.paths.states(), self._grammar.states([()])
        masks = self._grammar.masks(np.arange(len(self._grammar)))
        goes_on, first = masks[states, tokens], masks[nothing, tokens]
        whole = self._grammar.may_end(states) & first & ~self._broken
        begins = is_number & (~self.inside | (whole & ~goes_on))
        broken = is_number & np.where(begins, ~first, self._broken | ~goes_on)
        self.paths.restart(begins | ~is_number)
        self.paths.extend(np.where(is_number & ~broken, tokens, -1))
        self.inside, self._broken = is_number, broken
        return begins

    def keep(self, answers: NDArray[np.int64]) -> None:
        """Keep only the given answers."""
        self.paths.keep(answers)
        self.inside, self._broken = self.inside[answers], self._broken[answers]
