"""grammar: well-formed token sequences in a scheme, for constrained decoding and exact
distributions.

``Scheme.next`` returns the tokens that may follow one prefix. :class:`Grammar` handles thousands of
prefixes at once: many prefixes have the same continuations, so each distinct set of continuations
is stored as a state. :class:`Paths` tracks the states of numbers that are read in parallel. If all
numbers have the same length, :class:`Support` lists every number with its interval of values, so
that model logits give a probability for each number::

    grammar = Grammar(SCHEMES.build("p1000"))
    support = Support.of(grammar)                       # 28,800 numbers and 8 extras
    log_mass = support.log_probabilities(logits)        # [n, 28808]

Token ids are local, as in ``schemes.base``. Logits cover only the scheme's own tokens. If a model
has logits for the whole vocabulary, pass ``logits[..., codec.number_first : codec.text_first]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Int32s, Ints
from numtok.encoding.grid import cells
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schemes.base import ChannelScheme, Scheme
from numtok.errors import UsageError
from numtok.registry import spec_of

MOST_NUMBERS = 1_000_000  # in a support; p10 has 288,008 with four digits
_REMEMBERED = 1 << 17  # prefixes; a scheme like digits has infinitely many

Logits = NDArray[np.float32] | Floats


class Grammar:
    """State machine that accepts the well-formed numbers of a scheme. A state determines which
    tokens may follow a prefix, and whether the number may end.

    >>> grammar = Grammar(SCHEMES.build("p1000"))
    >>> states = grammar.states([(), (0,), (0, 504, 909)])
    >>> grammar.masks(states).sum(axis=1).tolist(), grammar.may_end(states).tolist()
    ([10, 900, 0], [False, False, True])
    """

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self._masks: list[Bools] = []  # by state
        self._may_end: list[bool] = []
        self._known: dict[tuple[bytes, bool], int] = {}
        self._state = lru_cache(_REMEMBERED)(self._look_up)

    def __reduce__(self) -> tuple[type["Grammar"], tuple[Scheme]]:
        return Grammar, (self.scheme,)  # states are a cache of the scheme's answers

    def __len__(self) -> int:
        """Number of distinct states so far; states are 0, 1, ..."""
        return len(self._masks)

    def states(self, prefixes: Sequence[tuple[int, ...]]) -> Ints:
        """Return the state of each prefix, int64[n]. Prefixes with the same continuations share a
        state.

        Each prefix must itself be allowed, as in ``Scheme.next``.
        """
        return np.fromiter(map(self._state, prefixes), np.int64, len(prefixes))

    def masks(self, states: Ints) -> Bools:
        """Return a mask of the tokens that may follow in each state, bool[n, vocabulary]."""
        masks = [self._masks[state] for state in states.tolist()]
        return np.array(masks, np.bool_).reshape(len(masks), len(self.scheme.vocabulary()))

    def may_end(self, states: Ints) -> Bools:
        """Return whether a number may end in each state, bool[n]."""
        return np.array(self._may_end, np.bool_)[states]

    def _look_up(self, prefix: tuple[int, ...]) -> int:
        allowed, may_end, _ = self.scheme.next(prefix)
        key = allowed.tobytes(), may_end
        if key not in self._known:
            self._known[key] = len(self._masks)
            self._masks.append(allowed)
            self._may_end.append(may_end)
        return self._known[key]


class Paths:
    """Grammar states of ``n`` numbers that are read in parallel, token by token.

    Numbers with the same tokens so far share a path, so the scheme is rarely queried.

    >>> paths = Paths(Grammar(SCHEMES.build("p1000")), 3)
    >>> paths.extend(np.array([0, 1, 0]))
    >>> paths.states()  # the same tokens may follow either sign
    array([0, 0, 0])
    """

    def __init__(self, grammar: Grammar, n: int) -> None:
        self._grammar = grammar
        self._distinct: list[tuple[int, ...]] = [()]
        self._which = np.zeros(n, np.int64)

    def states(self) -> Ints:
        """Return the current grammar state of each number, int64[n]."""
        return self._grammar.states(self._distinct)[self._which]

    def extend(self, tokens: Ints) -> None:
        """Append one token to each number. ``tokens`` contains local ids, int64[n], or -1 to append
        nothing."""
        choices = 1 + len(self._grammar.scheme.vocabulary())
        steps, self._which = np.unique(self._which * choices + tokens + 1, return_inverse=True)
        self._distinct = [
            (*self._distinct[path], token - 1) if token else self._distinct[path]
            for path, token in zip(*map(np.ndarray.tolist, np.divmod(steps, choices)), strict=True)
        ]

    def keep(self, numbers: Ints) -> None:
        """Keep only the numbers at the given indices, int64[k]."""
        self._which = self._which[numbers]

    def restart(self, numbers: Bools) -> None:
        """Remove all tokens of the numbers marked in ``numbers``, bool[n]."""
        self._distinct.append(())
        self._which[numbers] = len(self._distinct) - 1


class _Level(NamedTuple):
    """One token position of all numbers. A step is a token after a state, shared by many
    prefixes."""

    masks: Bools  # [states, vocabulary]
    step_states: Ints  # [steps], index in masks
    step_tokens: Ints  # [steps]
    parents: Ints  # [prefixes], index in the level before
    steps: Ints  # [prefixes]


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """All numbers that a fixed-width scheme can write, in ascending order. NaN comes last.

    >>> support = Support.of(Grammar(SCHEMES.build("p1000")))
    >>> index = np.searchsorted(support.high, -60.2)
    >>> support.paths[index].tolist(), float(support.values[index])
    ([1, 504, 909], -60.2)
    >>> float(support.low[index]), float(support.high[index])
    (-60.25, -60.15)
    """

    paths: Int32s  # [m, width], local ids
    low: Floats  # [m], from Scheme.interval
    high: Floats  # [m]
    values: Floats  # [m], decoded; NaN if decoding fails (and for NaN itself)
    levels: tuple[_Level, ...]

    @classmethod
    def of(cls, grammar: Grammar) -> "Support":
        """List all numbers that a scheme can write.

        Raises UsageError if the scheme has a value channel, numbers of different lengths, more than
        :data:`MOST_NUMBERS` numbers, or several ways to write the same number.
        """
        scheme = grammar.scheme
        paths, levels = _enumerated(grammar, _fixed_width(scheme))
        low, high = cells(scheme, paths)
        order = np.lexsort((high, low))  # ascending; NaN comes last
        if (low[order][1:] < high[order][:-1]).any():
            raise UsageError(
                f"scheme {spec_of(scheme)!r} writes the same number in several ways, so it has no "
                "exact distribution. Use samples, or repeat=1"
            )
        last = levels[-1]
        levels[-1] = last._replace(parents=last.parents[order], steps=last.steps[order])
        paths = paths[order]
        lengths = np.full(len(paths), paths.shape[1], np.int32)
        values = scheme.decode(paths.astype(np.uint32).ravel(), lengths).values
        return cls(
            paths=paths, low=low[order], high=high[order], values=values, levels=tuple(levels)
        )

    def raw(self, normalizer: FittedNormalizer) -> "Support":
        """Return the support in raw units, with the normalization of all values and interval ends
        undone."""
        low, high, values = map(normalizer.inverse, (self.low, self.high, self.values))
        return replace(self, low=low, high=high, values=values)

    def log_probabilities(self, logits: Logits) -> Floats:
        """Return the log-probability of each of the support's m numbers in nats, float64[n, m]. The
        probabilities in each row sum to 1.

        logits
            float[n, width, vocabulary], finite. Positions are treated as independent of each other,
            as in a masked language model.

        The logits at each position are normalized over the tokens that the grammar allows after the
        preceding ones. The computation needs 2 * n * m * 8 bytes of memory, so process many rows in
        chunks.
        """
        total = np.zeros((len(logits), 1))
        for position, level in enumerate(self.levels):
            scores = logits[:, position].astype(np.float64)
            norms = np.column_stack([_logsumexp(scores[:, mask]) for mask in level.masks])
            gained = scores[:, level.step_tokens] - norms[:, level.step_states]
            total = np.take(total, level.parents, axis=1)
            total += np.take(gained, level.steps, axis=1)
        return total


def _fixed_width(scheme: Scheme) -> int:
    """Return the tokens per number of a scheme whose numbers can be listed."""
    name = spec_of(scheme)
    if isinstance(scheme, ChannelScheme):
        raise UsageError(
            f"scheme {name!r} keeps values in a channel, so token probabilities do not determine "
            "them. Use a head that predicts values"
        )
    if scheme.tokens_per_number is None:
        raise UsageError(
            f"scheme {name!r} has numbers of any length, so no exact distribution. Use samples"
        )
    return scheme.tokens_per_number


def _enumerated(grammar: Grammar, width: int) -> tuple[Int32s, list[_Level]]:
    """Enumerate all numbers, int32[m, width], with the steps from each prefix to longer ones."""
    paths, levels = np.empty((1, 0), np.int32), []
    for _ in range(width):
        states, which = np.unique(
            grammar.states([tuple(path) for path in paths.tolist()]), return_inverse=True
        )
        masks = grammar.masks(states)
        step_states, step_tokens = np.nonzero(masks)
        first_step = np.searchsorted(step_states, np.arange(len(states)))
        children = masks.sum(axis=1)[which]  # per prefix
        ends = np.cumsum(children)
        if ends[-1] > MOST_NUMBERS:
            raise UsageError(
                f"exact distributions are limited to {MOST_NUMBERS:,} numbers, and scheme "
                f"{spec_of(grammar.scheme)!r} has more. Use samples, or fewer digits"
            )
        parents = np.repeat(np.arange(len(paths)), children)
        steps = np.arange(ends[-1]) + (first_step[which] - ends + children)[parents]
        levels.append(_Level(masks, step_states, step_tokens, parents, steps))
        paths = np.column_stack([paths[parents], step_tokens[steps].astype(np.int32)])
    return paths, levels


def _logsumexp(scores: Floats) -> Floats:
    """Compute the log-sum-exp of float64[n, k] over the last axis, float64[n]; k >= 1."""
    most = scores.max(axis=1)
    total: Floats = most + np.log(np.exp(scores - most[:, None]).sum(axis=1))
    return total
