"""automaton: state table of a fixed-width scheme, for sampling many numbers at once.

:mod:`numtok.encoding.grammar` queries the scheme for each prefix that occurs. That is too slow for
a decoder that samples a hundred numbers for each of a thousand rows. Here, prefixes with the same
continuations share a state, so a small table is enough for all prefixes, on any device.

The table contains only finite numbers, not the tokens for NaN, infinities and overflow.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache

import numpy as np

from numtok.arrays import Bools, Ints
from numtok.encoding.grid import ascending
from numtok.encoding.schemes.base import ChannelScheme, Scheme
from numtok.errors import UsageError
from numtok.registry import spec_of

_MOST_STATES = 20_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Automaton:
    """State table of a scheme, with ``S`` states and ``V`` tokens. Every number begins in state 0.

    >>> two = automaton(SCHEMES.build("nd,base=2,length=3"))
    >>> two.next[:, :2].tolist(), two.states(np.array([[1, 0, 1]])).tolist(), two.ordered
    ([[1, 1], [2, 2], [0, 0]], [[0, 1, 2]], True)

    next
        int64[S, V], state after each token: -1 if the token cannot follow, 0 after the last token
        of a number.
    order
        int64[S, V], all tokens, ordered for each state: the tokens that may follow come first.
    rank
        int64[S, V], position of each token in ``order``.
    ordered
        True if the tokens that may follow are in ascending order of their numbers' values. If
        False, that order is unknown, and these tokens are sorted by id.
    """

    scheme: Scheme
    next: Ints
    order: Ints
    rank: Ints
    ordered: bool

    @property
    def count(self) -> int:
        """Number of distinct finite numbers that the scheme can write.

        >>> automaton(SCHEMES.build("nd,base=2,length=3")).count
        8
        """
        assert self.scheme.tokens_per_number is not None
        begun = np.zeros(len(self.next), np.int64)
        begun[0] = 1  # number of prefixes in each state
        states, tokens = np.nonzero(self.next >= 0)
        for _ in range(self.scheme.tokens_per_number - 1):
            longer = np.zeros_like(begun)
            np.add.at(longer, self.next[states, tokens], begun[states])
            begun = longer
        return int(begun[states].sum())

    def states(self, tokens: Ints) -> Ints:
        """Return the state before each token of complete numbers, int64[n, K].

        tokens
            int64[n, K], ids of the tokens of each number.
        """
        states = np.zeros(tokens.shape, np.int64)
        for index in range(1, tokens.shape[1]):
            states[:, index] = self.next[states[:, index - 1], tokens[:, index - 1]]
        return states


@cache
def automaton(scheme: Scheme) -> Automaton:
    """Build the state table of a scheme.

    Raises UsageError if the scheme has a value channel, numbers of different lengths, or too many
    states.
    """
    width = scheme.tokens_per_number
    if isinstance(scheme, ChannelScheme) or width is None:
        raise UsageError(
            "decoder heads need a scheme with a fixed number of tokens and without a value "
            f"channel (got {spec_of(scheme)!r}). Use one such as nd or ud"
        )
    numbers: dict[tuple[int, Hashable], int] = {(0, None): 0}
    prefixes: list[tuple[int, ...]] = [()]
    following, orders, ordered = [], [], True
    finite = _finite(scheme, width)
    for prefix in prefixes:  # grows
        allowed = scheme.next(prefix).allowed & finite  # finite only matters at the start of a copy
        rising = ascending(scheme, prefix)
        ordered &= rising is not None
        tokens = np.flatnonzero(allowed)
        if rising is not None:
            tokens = rising[allowed[rising]]
        row = np.full(len(allowed), -1, np.int64)
        for token in tokens.tolist():
            row[token] = 0
            if len(prefix) + 1 == width:
                continue
            after = (*prefix, token)
            state = scheme.next(after).state
            key = len(after), after if state is None else state
            if key not in numbers:
                numbers[key] = len(prefixes)
                prefixes.append(after)
                if len(prefixes) > _MOST_STATES:
                    raise UsageError(
                        f"decoder heads support at most {_MOST_STATES:,} states, and scheme "
                        f"{spec_of(scheme)!r} has more. Use one such as nd or ud"
                    )
            row[token] = numbers[key]
        following.append(row)
        orders.append(np.concatenate([tokens, np.flatnonzero(row < 0)]))
    order = np.array(orders, np.int64)
    return Automaton(
        scheme=scheme,
        next=np.array(following),
        order=order,
        rank=np.argsort(order, axis=1),
        ordered=ordered,
    )


def _finite(scheme: Scheme, width: int) -> Bools:
    """Return the tokens of finite numbers, bool[V]. NaN and infinities repeat a single token."""
    count = len(scheme.vocabulary())
    repeated = np.repeat(np.arange(count, dtype=np.uint32), width)
    values = scheme.decode(repeated, np.full(count, width, np.int32)).values
    return (np.arange(count) < scheme.paper_vocabulary_size) | np.isfinite(values)
