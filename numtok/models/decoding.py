"""Prediction of numbers, token by token, with or without the constraints of the scheme's grammar.

Scores stay on the model's device. A number can continue only with one of the scheme's own tokens;
every other token in the vocabulary ends it.

``DecodingStates`` uses token ids of the whole vocabulary. ``Grammar`` and :class:`NumberReadings`
use local ids, which start at 0 for the scheme's first token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.codec import Codec
from numtok.encoding.grammar import Grammar, Paths
from numtok.encoding.schemes.base import Channel, ChannelScheme
from numtok.encoding.whole_text import own_tokens
from numtok.models.inputs import moved
from numtok.models.number_heads import NumberHeads
from numtok.models.precision import on_host, widened
from numtok.models.steps import DecodingStates
from numtok.models.training_batch import MASK

LONGEST = 64  # maximum tokens of a number if neither scheme nor masks determine it

#: Source of randomness: maps a token index in the numbers to float64[n] in [0, 1), one per number.
Draw = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class NumberReadings:
    """``n`` numbers that a model has predicted, with up to W tokens each."""

    tokens: NDArray[np.int64]  # [n, W], local ids, -1 after the end of a number
    on_grammar: NDArray[np.bool_]  # [n] every token was the most probable of the whole vocabulary
    logits: NDArray[np.float32] | None  # [n, W, number tokens], if requested
    parameters: Tensor | None  # [n, P] of the value head, on the model's device

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens in each number, int32[n]; 0 if no number was predicted."""
        lengths: NDArray[np.int32] = (self.tokens >= 0).sum(axis=1, dtype=np.int32)
        return lengths

    def take(self, which: slice | NDArray[np.int64]) -> "NumberReadings":
        """Return the numbers ``which``, a slice or indices int64[k], in their order."""
        return NumberReadings(
            self.tokens[which],
            self.on_grammar[which],
            None if self.logits is None else self.logits[which],
            None if self.parameters is None else self.parameters[which],
        )

    @classmethod
    def joined(cls, parts: "Sequence[NumberReadings]") -> "NumberReadings":
        """Return the numbers of at least one part, one part after another.

        If a part has logits, all have, and the same number of tokens per number.
        """
        width = max(part.tokens.shape[1] for part in parts)
        tokens = [
            np.pad(part.tokens, ((0, 0), (0, width - part.tokens.shape[1])), constant_values=-1)
            for part in parts
        ]
        logits = [part.logits for part in parts if part.logits is not None]
        parameters = [part.parameters for part in parts if part.parameters is not None]
        return cls(
            np.concatenate(tokens),
            np.concatenate([part.on_grammar for part in parts]),
            np.concatenate(logits) if logits else None,
            torch.cat(parameters) if parameters else None,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Reader:
    """Reader that obtains numbers from a model: it predicts them token by token, or scores given
    numbers.

    constrained
        Restrict predictions to tokens that the grammar allows.
    longest
        Maximum number of tokens, used only if neither the scheme nor the number of masks determines
        the length. A number that has not ended after this many tokens is discarded.
    """

    model: NumberHeads
    codec: Codec
    grammar: Grammar
    constrained: bool
    longest: int = LONGEST
    _rules: "GrammarMasks" = field(init=False)
    _own: NDArray[np.bool_] = field(init=False)  # which of the scheme's tokens occur in numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rules", GrammarMasks(self.grammar))
        object.__setattr__(self, "_own", own_tokens(self.codec.scheme))

    @torch.no_grad()
    def read(
        self, steps: DecodingStates, draw: Draw | None = None, keep_logits: bool = False
    ) -> NumberReadings:
        """Predict numbers greedily, or by sampling if ``draw`` is given.

        If ``keep_logits`` is True, the result also contains the logits at all positions, including
        those after the end of a number. The logits take n * W * 4 bytes per number token in the
        vocabulary.
        """
        state = steps.first()
        n = len(state)
        parameters, inputs = self._values(state)
        fixed = self.codec.scheme.tokens_per_number
        limit = fixed or self.longest
        if steps.lengths is not None:
            limit = int(steps.lengths.max(initial=0))
        tokens, on_grammar = np.full((n, limit), -1), np.ones(n, np.bool_)
        numbers, going = np.arange(n), np.ones(n, np.bool_)  # active numbers; those not yet ended
        paths = Paths(self.grammar, n)
        kept: list[Tensor] = []
        for index in range(limit):
            if steps.lengths is not None:
                going &= index < steps.lengths[numbers]
            scores, other_scores = self._scores(state)
            if keep_logits:
                kept.append(scores)
            drawn = None if draw is None else draw(index)[numbers]
            chosen, is_most_probable = self._choose(scores, other_scores, paths, drawn)
            chosen[~going] = -1
            on_grammar[numbers] &= is_most_probable | ~going
            tokens[numbers, index] = chosen
            going = chosen >= 0
            if index + 1 == limit or not (going.any() or keep_logits):
                break
            if 2 * np.count_nonzero(going) <= len(going) and not keep_logits:
                still = np.flatnonzero(going)
                numbers, chosen, inputs = numbers[still], chosen[still], inputs[still]
                going = going[still]
                steps.keep(still)
                paths.keep(still)
            if self.constrained:
                paths.extend(chosen)
            state = steps.next(np.where(going, chosen + self.codec.number_first, MASK), inputs)
            inputs = np.ones(len(numbers), np.float32)
        tokens = tokens[:, : index + 1]
        if fixed is None and steps.lengths is None:
            tokens[numbers[going]] = -1  # discard numbers that have not ended
        logits = torch.stack(kept, dim=1).cpu().numpy() if kept else None
        return NumberReadings(tokens, on_grammar, logits, parameters)

    @torch.no_grad()
    def score(self, steps: DecodingStates, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return float64[n]: the log-probabilities of given numbers, in nats.

        tokens
            int64[n, W], local ids; a number with fewer tokens is padded with -1.

        log P = sum_k logits_k[t_k] - logsumexp of logits_k over the tokens that the grammar allows
        after t_0 ... t_(k-1). It is -inf for numbers that are not well-formed. The end of a number
        is not scored, because schemes of variable length mark it with a text token.
        """
        state = steps.first()
        _, inputs = self._values(state)
        total, paths = np.zeros(len(tokens)), Paths(self.grammar, len(tokens))
        token = np.full(len(tokens), -1)
        for index, column in enumerate(tokens.T):
            if index:
                token[np.isinf(total)] = -1  # the grammar has no states for malformed numbers
                paths.extend(token)
                ids = np.where(token >= 0, token + self.codec.number_first, MASK)
                state = steps.next(ids, inputs)
                inputs = np.ones(len(tokens), np.float32)
            token = np.where(np.isinf(total), -1, column)
            scores, _ = self._scores(state)
            allowed, _ = self._rules.of(paths, scores.device)
            log_p = widened(scores).masked_fill(~allowed, -torch.inf).log_softmax(dim=1)
            at = moved(np.maximum(token, 0), log_p.device)[:, None]
            total += np.where(token >= 0, on_host(log_p.gather(1, at)[:, 0]), 0.0)
        return total

    def _values(self, state: Tensor) -> tuple[Tensor | None, Channel]:
        """Return the value head's parameters, and the input values of each number's first token."""
        ones: Channel = np.ones(len(state), np.float32)
        if self.model.value_head is None:
            return None, ones
        parameters = self.model.value_head(state.float())
        if not isinstance(self.codec.scheme, ChannelScheme):
            return parameters, ones
        return parameters, self.model.channel(parameters)

    def _scores(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the next tokens: [n, number tokens], and [n, vocabulary] with -inf
        for number tokens."""
        scores = self.model.token_head(state.float()).float()
        first, own = self.codec.number_first, moved(self._own, scores.device)
        some = slice(first, first + len(own))
        numbers = scores[:, some].masked_fill(~own, -torch.inf)  # a copy, not a view
        scores[:, some] = scores[:, some].masked_fill(own, -torch.inf)
        return numbers, scores

    def _choose(
        self, numbers: Tensor, other_scores: Tensor, paths: Paths, drawn: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the next local token of each number, -1 for its end; and whether it is also the
        most probable token without a grammar."""
        end = other_scores.amax(dim=1)
        free = chosen = _largest(numbers, end)
        if drawn is not None:
            end = other_scores.logsumexp(dim=1)
        if self.constrained:
            allowed, may_end = self._rules.of(paths, numbers.device)
            numbers = numbers.masked_fill(~allowed, -torch.inf)
            end = end.masked_fill(~may_end, -torch.inf)
        if drawn is not None:
            chosen = _drawn(numbers, end, drawn)
        elif self.constrained:
            chosen = _largest(numbers, end)
        both = torch.stack([chosen, (chosen == free).long()]).cpu().numpy()  # one copy
        return both[0], both[1].astype(np.bool_)


class GrammarMasks:
    """Cache, stored on a device, of the tokens that a grammar allows in each of its states."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._tables: tuple[Tensor, Tensor] | None = None  # bool[states, tokens], bool[states]

    def of(self, paths: Paths, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return masks of the tokens that may follow each number, bool[n, number tokens], and of
        the numbers that may end, bool[n]."""
        states = paths.states()
        if self._tables is None or len(self._tables[1]) < len(self._grammar):
            every = np.arange(len(self._grammar))
            masks, may_end = self._grammar.masks(every), self._grammar.may_end(every)
            self._tables = moved(masks, device), moved(may_end, device)
        masks_SV, may_end_S = self._tables
        which = moved(states, device)
        return masks_SV[which], may_end_S[which]

    def at_first(self, device: torch.device) -> Tensor:
        """Return bool[number tokens], True for the tokens that may start a number."""
        return self.of(Paths(self._grammar, 1), device)[0][0]


def _largest(numbers: Tensor, end: Tensor) -> Tensor:
    """Return int64[n]: the token with the largest score, -1 for the end."""
    best, token = numbers.max(dim=1)
    return torch.where(end > best, -1, token)


def _drawn(numbers: Tensor, end: Tensor, shares: NDArray[np.float64]) -> Tensor:
    """Return int64[n]: the token at which the cumulative probability reaches a fraction in [0, 1);
    -1 for the end."""
    weights = widened(torch.cat([numbers, end[:, None]], dim=1)).softmax(dim=1).cumsum(dim=1)
    wanted = torch.from_numpy(shares).to(weights.dtype).to(weights.device)[:, None]
    wanted = wanted * weights[:, -1:]
    token = torch.searchsorted(weights, wanted, right=True)[:, 0]
    return torch.where(token == numbers.shape[1], -1, token)
