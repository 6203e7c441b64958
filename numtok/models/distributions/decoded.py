"""Distributions of the numbers that a decoder generates, computed with the decoder.

The tokens of a number stand for an interval, called its cell, in which the density is uniform. If
the scheme's tokens can be ordered by the resulting values, the distribution function is a sum along
the tokens of one number, and a quantile is found by choosing one token at a time. Both are exact
for any number of cells. For other schemes (``hamming``, repeated tokens), they are computed from
samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.automaton import Automaton
from numtok.encoding.normalizers.base import Scaling, width_between
from numtok.encoding.schemes.base import Scheme
from numtok.models.distributions.decoder_cells import cells, nearest_tokens
from numtok.models.distributions.predictive import Floats, checked, unscaled
from numtok.models.distributions.samples import SampledPredictive
from numtok.models.distributions.sampling import Sampling
from numtok.models.precision import on_host

_AT_ONCE = 1 << 12  # numbers per batch: more do not fit into a core's cache
_FOLLOWED = 1 << 12  # rows whose probabilities at every token are in memory at once
_LEVELS = (np.arange(128) + 0.5) / 128  # quantiles that represent the whole distribution
_BEAMS = 16
_NEAR = 1e-8  # as a fraction of a cell


class Beginnings(Protocol):
    """Distinct prefixes of numbers in a decoder, with the probabilities of their next tokens.

    Each of the ``U`` prefixes is computed only once. :meth:`Decoder.begun` returns an object with
    this interface.
    """

    #: float64[U, V], or float32 (``precision``): log-probabilities of the next token, normalized
    #: over the allowed tokens.
    log_p: Tensor
    state: Tensor  # int64[U] of the codec's automaton

    def extend(self, which: Tensor, tokens: Tensor) -> Tensor:
        """Extend the prefixes ``which`` (int64[M]) by one token each (int64[M]).

        Both arguments may contain repetitions. Return int64[M]: the index of each extended prefix.
        """


class Decoder(Protocol):
    """Interface of a module that generates numbers token by token, such as the reader of a decoder
    head."""

    @property
    def scheme(self) -> Scheme:
        """The scheme that converts numbers to the decoder's tokens, and tokens to numbers."""

    @property
    def automaton(self) -> Automaton:
        """The automaton that describes which tokens may follow each other in the scheme."""

    @property
    def tokens_per_number(self) -> int:
        """Number of tokens per number, K, which is the same for all numbers."""

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer ``order``, int64[S, V]: the tokens allowed in each state of the
        automaton, sorted by the resulting values."""

    def begun(self, parameters_NP: Tensor) -> Beginnings:
        """Return the empty prefix of each number, as a starting point for generation."""

    def beams(self, parameters_NP: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return the most probable numbers found by beam search: tokens [N, count, K] and
        log-probabilities [N, count]."""

    def values(self, tokens_NK: Tensor) -> Floats:
        """Return float64[N]: the normalized values of complete numbers, given their tokens."""

    def log_probabilities(
        self, parameters_NP: Tensor, tokens_NK: Tensor, states_NK: Tensor
    ) -> Tensor:
        """Return float64[N, K, V]: the log-probabilities of all tokens at each position, given the
        tokens before it.

        ``states_NK`` contains the state of the automaton before each token. The result is float32
        on devices without float64.
        """


@dataclass(frozen=True, eq=False)
class DecoderDistribution(SampledPredictive):
    """Distributions, in raw units, of ``n`` numbers that a decoder generates, each from one hidden
    state."""

    reader: Decoder
    parameters: Tensor  # [n, D]
    scaling: Scaling

    # --- exact ------------------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        """Return float64[n]: the log-density at each value, which is the log-probability of the
        value's tokens minus the log of the width of their cell.

        In a scheme with repeated tokens, only exact repetitions are counted, so the result is a
        lower bound.
        """
        scaled = self.scaling.forward(values)
        tokens, beyond = nearest_tokens(self.reader.scheme, scaled)
        low, high = cells(self.reader.scheme, tokens)
        log_p = np.concatenate([followed.log_p for followed in self._followed(tokens)])
        slope = self.scaling.log_slope(np.where(np.isfinite(values), values, 0.0))
        return np.where(beyond, -np.inf, log_p - np.log(high - low) + slope)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        """Return float64[n], in nats: log P(low < X <= high), as a sum over the cells between the
        ends.

        No difference of probabilities is computed, so tiny results are accurate. The result is NaN
        if the scheme's tokens cannot be ordered by value, because samples cannot resolve small
        probabilities.
        """
        if not self.reader.automaton.ordered:
            return super().log_interval(low, high)
        first, second = self._placed(low), self._placed(high)
        apart = width_between(self.scaling, low, high)
        logs = [
            lower.log_between(upper, first.take(part), second.take(part), apart[part])
            for part, lower, upper in zip(
                self._parts(_FOLLOWED),
                self._followed(first.tokens),
                self._followed(second.tokens),
                strict=True,
            )
        ]
        log_p = np.where(low < high, np.concatenate(logs), -np.inf)
        return np.where(np.isnan(low) | np.isnan(high), np.nan, log_p)

    def cdf(self, values: Floats) -> Floats:
        if not self.reader.automaton.ordered:
            return super().cdf(values)
        placed = self._placed(values)
        parts = zip(self._parts(_FOLLOWED), self._followed(placed.tokens), strict=True)
        total = np.concatenate([followed.up_to(placed.below[part]) for part, followed in parts])
        return np.where(np.isnan(values), np.nan, np.clip(total, 0.0, 1.0))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        array = checked(levels)
        if not self.reader.automaton.ordered:
            return super().quantiles(levels)
        return self._inverted(np.tile(array, (len(self.parameters), 1)))

    def mean(self) -> Floats:
        """Return float64[n]: the mean of 128 quantiles at evenly spaced levels.

        The outermost 0.4% of the probability on each side is ignored, so that an extreme value with
        a probability of one in a thousand does not dominate the mean.
        """
        points = self._even_quantiles
        return np.asarray((points / points.shape[1]).sum(axis=1))

    def mode(self) -> Floats:
        """Return float64[n]: the value of the most probable token sequence, found by a search with
        16 beams."""
        parts = []
        for part in self._parts(_AT_ONCE // _BEAMS):
            tokens, _ = self.reader.beams(self.parameters[part], _BEAMS)
            parts.append(self.reader.values(tokens[:, 0]))
        return self.scaling.inverse(np.concatenate(parts))

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the CRPS, approximated with 128 quantiles at evenly spaced levels."""
        points = self._even_quantiles
        count = points.shape[1]  # divide first: sums of large values could overflow
        away = (np.abs(points - values[:, None]) / count).sum(axis=1)
        ranks = (2 * np.arange(count) - count + 1) / count
        spread = (np.sort(points, axis=1) / count * ranks).sum(axis=1)
        with np.errstate(invalid="ignore"):  # NaN for quantiles beyond float64
            return np.asarray(away - spread)

    # --- sampling ---------------------------------------------------------------------------------

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        return self.drawn(count, rng, Sampling())

    def drawn(self, count: int, rng: np.random.Generator, sampling: Sampling) -> Floats:
        """Return float64[n, count]: the decoded values of sampled token sequences.

        Each token sequence decodes to a single value; values are not spread over the cell.
        :meth:`sample` does the same with default sampling options.
        """
        samples = np.empty((len(self.parameters), count))
        for part in self._parts(max(1, _AT_ONCE // count)):
            shares = rng.random((part.stop - part.start, count, self.reader.tokens_per_number))
            samples[part] = self._drawn_part(part, shares, sampling)
        return unscaled(self.scaling, samples)

    @torch.no_grad()
    def _drawn_part(self, part: slice, shares: Floats, sampling: Sampling) -> Floats:
        begun = self.reader.begun(self.parameters[part])
        rows, count, width = shares.shape
        which = torch.arange(rows, device=begun.state.device).repeat_interleave(count)
        wanted = torch.from_numpy(shares.reshape(-1, width))
        wanted = wanted.to(begun.log_p.dtype).to(which.device)
        tokens = []
        for index in range(width):
            sums = (
                sampling.of(begun.log_p).softmax(dim=1).cumsum(dim=1)
            )  # per prefix, not per sample
            share = wanted[:, index : index + 1] * sums[which, -1:]
            token = torch.searchsorted(sums[which], share, right=True)[:, 0]
            tokens.append(token)
            if index + 1 < width:
                which = begun.extend(which, token)
        return self.reader.values(torch.stack(tokens, dim=1)).reshape(rows, count)

    # --- internals --------------------------------------------------------------------------------

    @cached_property
    def _even_quantiles(self) -> Floats:
        """float64[n, 128]: quantiles at the middles of 128 equal parts of the probability."""
        return self.quantiles(_LEVELS.tolist())

    def _parts(self, size: int) -> list[slice]:
        n = len(self.parameters)
        return [slice(first, min(first + size, n)) for first in range(0, max(n, 1), size)]

    def _placed(self, values: Floats) -> "_Placed":
        """Locate raw values in their cells."""
        scaled = self.scaling.forward(values)
        tokens, beyond = nearest_tokens(self.reader.scheme, scaled)
        low, high = cells(self.reader.scheme, tokens)
        with np.errstate(invalid="ignore", over="ignore"):  # values far outside all cells
            shares = [(scaled - low) / (high - low), (high - scaled) / (high - low)]
        below, above = (np.clip(np.nan_to_num(share), 0.0, 1.0) for share in shares)
        return _Placed(tokens, below, above, np.where(beyond, np.inf, high - low))

    @torch.no_grad()
    def _followed(self, tokens: NDArray[np.int64]) -> Iterator["_Followed"]:
        """Yield the predictions at each token of numbers (int64[n, K]), some rows at a time."""
        reader, device = self.reader, self.parameters.device
        for part in self._parts(_FOLLOWED):
            tokens_NK = torch.from_numpy(tokens[part]).to(device)
            states_NK = torch.from_numpy(reader.automaton.states(tokens[part])).to(device)
            log_NKV = reader.log_probabilities(self.parameters[part], tokens_NK, states_NK)
            yield _Followed(
                on_host(log_NKV), reader.automaton.rank[states_NK.cpu().numpy()], tokens[part]
            )

    def _inverted(self, shares: Floats) -> Floats:
        """Return float64[n, q]: where the distribution function reaches fractions in (0, 1)."""
        quantiles = np.empty(shares.shape)
        for part in self._parts(max(1, _AT_ONCE // shares.shape[1])):
            tokens, left = self._descended(part, shares[part])
            low, high = cells(self.reader.scheme, tokens)
            quantiles[part] = (low + left * (high - low)).reshape(quantiles[part].shape)
        return unscaled(self.scaling, quantiles)

    @torch.no_grad()
    def _descended(self, part: slice, shares: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Return the tokens [m, K] of the cell of each fraction, and the fraction within the
        cell."""
        reader = self.reader
        begun = reader.begun(self.parameters[part])
        rows, count = shares.shape
        which = torch.arange(rows, device=begun.state.device).repeat_interleave(count)
        left = torch.from_numpy(shares.ravel()).to(begun.log_p.dtype).to(which.device)[:, None]
        least = max(1e-300, torch.finfo(left.dtype).tiny)
        tokens = []
        for index in range(reader.tokens_per_number):
            order_UV = reader.get_buffer("order")[begun.state]
            p_UV = begun.log_p.exp().gather(1, order_UV)
            sums_UV = p_UV.cumsum(dim=1)
            sums_UV = sums_UV / sums_UV[:, -1:]
            # Never after the last possible token, despite rounding.
            position = torch.searchsorted(sums_UV[which], left)
            last = (begun.log_p > -torch.inf).sum(dim=1, keepdim=True) - 1
            position = torch.minimum(position, last[which])
            upto, own = sums_UV[which].gather(1, position), p_UV[which].gather(1, position)
            left = ((left - (upto - own)) / own.clamp(min=least)).clamp(0.0, 1.0)
            token = order_UV[which].gather(1, position)[:, 0]
            tokens.append(token)
            if index + 1 < reader.tokens_per_number:
                which = begun.extend(which, token)
        return torch.stack(tokens, dim=1).cpu().numpy(), on_host(left[:, 0])


class _Placed(NamedTuple):
    """``n`` values in their cells: the fractions of the cell below and above each value."""

    tokens: NDArray[np.int64]  # [n, K]
    below: Floats
    above: Floats
    size: Floats  # of the cell, normalized; infinite for values outside all cells

    def take(self, part: slice) -> "_Placed":
        """Return some of the values."""
        return _Placed(self.tokens[part], self.below[part], self.above[part], self.size[part])


@dataclass(frozen=True, eq=False)
class _Followed:
    """``n`` complete numbers, with the decoder's predictions at each of their tokens."""

    log_p_NKV: Floats
    rank_NKV: NDArray[np.int64]  # rank of each token by the values that it leads to
    tokens_NK: NDArray[np.int64]

    @cached_property
    def _chosen(self) -> Floats:
        return self._at(self.log_p_NKV)

    def _at(self, of_NKV: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(of_NKV, self.tokens_NK[:, :, None], axis=2)[:, :, 0]

    @property
    def log_p(self) -> Floats:
        """float64[n]: the log-probability of the complete number."""
        return np.asarray(self._chosen.sum(axis=1))

    @cached_property
    def _rank(self) -> NDArray[np.int64]:
        return self._at(self.rank_NKV)

    def _log_further(self, larger: bool, within: Floats) -> Floats:
        """Return float64[n, K + 1]: given the tokens before each position, the log-probability of
        smaller (or larger) numbers; last, that of the fraction ``within`` of its own cell."""
        own_NK1 = self._rank[:, :, None]
        further_NKV = self.rank_NKV > own_NK1 if larger else self.rank_NKV < own_NK1
        log_further_NK = _log_sum(self.log_p_NKV, further_NKV)
        logs = np.empty((len(log_further_NK), log_further_NK.shape[1] + 1))
        with np.errstate(divide="ignore"):
            logs[:, -1] = np.log(within)
        for index in reversed(range(log_further_NK.shape[1])):
            logs[:, index] = np.logaddexp(
                log_further_NK[:, index], self._chosen[:, index] + logs[:, index + 1]
            )
        return logs

    def up_to(self, within: Floats) -> Floats:
        """Return float64[n]: P(X <= the given fraction of its cell)."""
        return np.exp(self._log_further(False, within)[:, 0])

    def log_between(
        self, other: "_Followed", start: _Placed, end: _Placed, apart: Floats
    ) -> Floats:
        """Return float64[n]: the log-probability from ``start`` in this number's cell to ``end`` in
        the other's, at the normalized distance ``apart``.

        It is the sum of three parts from the first token that differs: the tokens between, the
        larger numbers after this one's token, and the smaller numbers after the other's.
        """
        rows, width = np.arange(len(self.tokens_NK)), self.tokens_NK.shape[1]
        differing = self.tokens_NK != other.tokens_NK
        fork = np.where(differing.any(axis=1), differing.argmax(axis=1), width)
        before = np.concatenate(
            [np.zeros((len(rows), 1)), np.cumsum(self._chosen, axis=1)], axis=1
        )[rows, fork]
        at = np.minimum(fork, width - 1)
        rank_NV = self.rank_NKV[rows, at]
        low, high = self._rank[rows, at], other._rank[rows, at]
        inside = (rank_NV > low[:, None]) & (rank_NV < high[:, None])
        between = _log_sum(self.log_p_NKV[rows, at], inside)
        above = self._chosen[rows, at] + self._log_further(True, start.above)[rows, at + 1]
        below = other._chosen[rows, at] + other._log_further(False, end.below)[rows, at + 1]
        parted = np.logaddexp(np.logaddexp(between, above), below)
        share = end.below - start.below
        # For close values the difference has no significant digits.
        is_near = (share < _NEAR) & np.isfinite(start.size) & np.isfinite(end.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            together = np.log(np.maximum(np.where(is_near, apart / start.size, share), 0.0))
        return np.asarray(before + np.where(fork < width, parted, together))


def _log_sum(logs: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Return float64[...]: the log of the sum of the chosen exp(logs) over the last axis."""
    return np.asarray(np.logaddexp.reduce(np.where(chosen, logs, -np.inf), axis=-1))
