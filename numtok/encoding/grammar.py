"""Which token sequences are numbers of a scheme: for constrained decoding and exact distributions.

``Scheme.next`` says what may follow one prefix. :class:`Grammar` answers for
thousands at once: few answers differ, so each is kept once as a state, and
:class:`Paths` follows numbers from state to state as they are read. Where all
numbers have the same length, :class:`Support` lists every one of them with the
interval of values that it stands for, so that the logits of a model become a
probability for each::

    grammar = Grammar(SCHEMES.build("p1000"))
    support = Support.of(grammar)                       # 28,800 numbers and 8 extras
    log_mass = support.log_probabilities(logits)        # [n, 28808]

Token ids are local, as in ``schemes.base``; logits are those of the scheme's own
tokens, ``logits[..., codec.number_first : codec.text_first]`` of a whole vocabulary.
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

MOST_NUMBERS = 1_000_000  # of a support; p10 has 288,008 with four digits
_REMEMBERED = 1 << 17  # prefixes; a scheme like digits has no end of them

Logits = NDArray[np.float32] | Floats


class Grammar:
    """The well-formed numbers of a scheme, prefix by prefix.

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
        """How many states have been met so far: 0, 1, ..."""
        return len(self._masks)

    def states(self, prefixes: Sequence[tuple[int, ...]]) -> Ints:
        """int64[n]: prefixes of one state have the same answer.

        Each prefix is allowed itself, as in ``Scheme.next``.
        """
        return np.fromiter(map(self._state, prefixes), np.int64, len(prefixes))

    def masks(self, states: Ints) -> Bools:
        """bool[n, vocabulary]: what may come next in each state."""
        masks = [self._masks[state] for state in states.tolist()]
        return np.array(masks, np.bool_).reshape(len(masks), len(self.scheme.vocabulary()))

    def may_end(self, states: Ints) -> Bools:
        """bool[n]: whether a number may end in each state."""
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
    """How far ``n`` numbers are that are read at once, token by token.

    Numbers that are alike so far are one path, so the scheme is asked about few.

    >>> paths = Paths(Grammar(SCHEMES.build("p1000")), 3)
    >>> paths.extend(np.array([0, 1, 0]))
    >>> paths.states()  # after any sign the same tokens are allowed
    array([1, 1, 1])
    """

    def __init__(self, grammar: Grammar, n: int) -> None:
        self._grammar = grammar
        self._distinct: list[tuple[int, ...]] = [()]
        self._which = np.zeros(n, np.int64)

    def states(self) -> Ints:
        """int64[n]: the state of the grammar that each is in."""
        return self._grammar.states(self._distinct)[self._which]

    def extend(self, tokens: Ints) -> None:
        """Put a local token (int64[n]) behind each; -1 leaves it as it is."""
        choices = 1 + len(self._grammar.scheme.vocabulary())
        steps, self._which = np.unique(self._which * choices + tokens + 1, return_inverse=True)
        self._distinct = [
            (*self._distinct[path], token - 1) if token else self._distinct[path]
            for path, token in zip(*map(np.ndarray.tolist, np.divmod(steps, choices)), strict=True)
        ]

    def keep(self, numbers: Ints) -> None:
        """Go on with these alone (int64[k], indices into those gone on with so far)."""
        self._which = self._which[numbers]

    def restart(self, numbers: Bools) -> None:
        """Begin anew with these (bool[n]): nothing of them has been read yet."""
        self._distinct.append(())
        self._which[numbers] = len(self._distinct) - 1


class _Level(NamedTuple):
    """One position of all numbers. A step is a token after a state; many prefixes share one."""

    masks: Bools  # [states, vocabulary]
    step_states: Ints  # [steps], index in masks
    step_tokens: Ints  # [steps]
    parents: Ints  # [prefixes], index in the level before
    steps: Ints  # [prefixes]


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """Every number of a scheme of fixed width, ascending on the line, NaN last.

    >>> support = Support.of(Grammar(SCHEMES.build("p1000")))
    >>> place = np.searchsorted(support.high, -60.2)
    >>> support.paths[place], support.low[place], support.high[place], support.values[place]
    (array([  1, 504, 909], dtype=int32), -60.25, -60.15, -60.2)
    """

    paths: Int32s  # [m, width], local ids
    low: Floats  # [m], as Scheme.interval gives them
    high: Floats  # [m]
    values: Floats  # [m], as decoded; NaN where that fails (and for NaN itself)
    levels: tuple[_Level, ...]

    @classmethod
    def of(cls, grammar: Grammar) -> "Support":
        """List the numbers of a scheme.

        Raises UsageError for a scheme with a value channel, with numbers of different lengths,
        with more than :data:`MOST_NUMBERS` numbers, or with several ways to write a number.
        """
        scheme = grammar.scheme
        paths, levels = _enumerated(grammar, _fixed_width(scheme))
        low, high = cells(scheme, paths)
        order = np.lexsort((high, low))  # ascending; NaN comes last
        if (low[order][1:] < high[order][:-1]).any():
            raise UsageError(
                f"scheme {spec_of(scheme)!r} has several ways to write the same number, whose "
                "probabilities would have to be summed; use samples, or the scheme with repeat=1"
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
        """The same numbers in raw units: the normalisation of ends and values undone."""
        low, high, values = map(normalizer.inverse, (self.low, self.high, self.values))
        return replace(self, low=low, high=high, values=values)

    def log_probabilities(self, logits: Logits) -> Floats:
        """float64[n, m]: the log-probability of each number, in nats; each row sums to 1.

        logits
            float[n, width, vocabulary], finite, each position independent of the others, as a
            model of masked tokens gives them.

        Each position is normalised over what the grammar allows after the tokens before it. Takes
        2 * n * m * 8 bytes: give rows in chunks.
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
    """Tokens per number of a scheme whose numbers can be listed."""
    name = spec_of(scheme)
    if isinstance(scheme, ChannelScheme):
        raise UsageError(
            f"scheme {name!r} keeps values in a channel beside the tokens, so probabilities of "
            "tokens are none of values; use a head that predicts the value"
        )
    if scheme.tokens_per_number is None:
        raise UsageError(
            f"scheme {name!r} has numbers of any length, which cannot be listed; "
            "only a scheme of fixed length has an exact distribution; use samples"
        )
    return scheme.tokens_per_number


def _enumerated(grammar: Grammar, width: int) -> tuple[Int32s, list[_Level]]:
    """int32[m, width], all numbers, and how each prefix grows out of a shorter one."""
    paths, levels = np.empty((1, 0), np.int32), []
    for _ in range(width):
        states, which = np.unique(
            grammar.states([tuple(path) for path in paths.tolist()]), return_inverse=True
        )
        masks = grammar.masks(states)
        step_states, step_tokens = np.nonzero(masks)
        first_step = np.searchsorted(step_states, np.arange(len(states)))
        children = masks.sum(axis=1)[which]  # of each prefix
        ends = np.cumsum(children)
        if ends[-1] > MOST_NUMBERS:
            raise UsageError(
                f"scheme {spec_of(grammar.scheme)!r} has more than {MOST_NUMBERS:,} numbers, too "
                "many to list for an exact distribution; use samples, or a scheme of fewer digits"
            )
        parents = np.repeat(np.arange(len(paths)), children)
        steps = np.arange(ends[-1]) + (first_step[which] - ends + children)[parents]
        levels.append(_Level(masks, step_states, step_tokens, parents, steps))
        paths = np.column_stack([paths[parents], step_tokens[steps].astype(np.int32)])
    return paths, levels


def _logsumexp(scores: Floats) -> Floats:
    """float64[n] of float64[n, k], k at least 1."""
    most = scores.max(axis=1)
    total: Floats = most + np.log(np.exp(scores - most[:, None]).sum(axis=1))
    return total
