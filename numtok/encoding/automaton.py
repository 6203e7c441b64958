"""The numbers of a scheme of fixed width as a table of states, for drawing very many at once.

``grammar`` asks the scheme about each beginning that it meets. Where a decoder
writes a hundred numbers for each of a thousand rows that is too often. Beginnings
after which the same may follow are one state here, so a table of a few rows
answers for all of them, on any device.

Only finite numbers: the tokens for NaN, infinities and overflow are left out.
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
    """``S`` states over a vocabulary of ``V`` tokens; a number begins in state 0.

    >>> two = automaton(SCHEMES.build("nd,base=2,length=3"))
    >>> two.next[:, :2].tolist(), two.states(np.array([[1, 0, 1]])).tolist(), two.ordered
    ([[1, 1], [2, 2], [0, 0]], [[0, 1, 2]], True)

    next
        int64[S, V]: the state after a token, -1 where it cannot follow; of a last token 0.
    order
        int64[S, V]: the tokens that may follow, those of the smallest numbers first; then others.
    rank
        int64[S, V]: the place of each token in that order.
    ordered
        Whether the order is known. Else it is that of the ids.
    """

    scheme: Scheme
    next: Ints
    order: Ints
    rank: Ints
    ordered: bool

    @property
    def count(self) -> int:
        """How many numbers there are.

        >>> automaton(SCHEMES.build("nd,base=2,length=3")).count
        8
        """
        assert self.scheme.tokens_per_number is not None
        begun = np.zeros(len(self.next), np.int64)
        begun[0] = 1  # beginnings in each state
        states, tokens = np.nonzero(self.next >= 0)
        for _ in range(self.scheme.tokens_per_number - 1):
            longer = np.zeros_like(begun)
            np.add.at(longer, self.next[states, tokens], begun[states])
            begun = longer
        return int(begun[states].sum())

    def states(self, tokens: Ints) -> Ints:
        """int64[n, K]: the state before each token of whole numbers (int64[n, K])."""
        states = np.zeros(tokens.shape, np.int64)
        for place in range(1, tokens.shape[1]):
            states[:, place] = self.next[states[:, place - 1], tokens[:, place - 1]]
        return states


@cache
def automaton(scheme: Scheme) -> Automaton:
    """That of a scheme.

    Raises UsageError for one with a value channel, numbers of different lengths, or too many
    states.
    """
    width = scheme.tokens_per_number
    if isinstance(scheme, ChannelScheme) or width is None:
        raise UsageError(
            f"scheme {spec_of(scheme)!r} cannot be written by a decoder head: its numbers have "
            "a value beside the tokens or different lengths; give one such as nd or ud"
        )
    numbers: dict[tuple[int, Hashable], int] = {(0, None): 0}
    prefixes: list[tuple[int, ...]] = [()]
    following, orders, ordered = [], [], True
    finite = _finite(scheme, width)
    for prefix in prefixes:  # grows
        allowed = scheme.next(prefix).allowed & finite  # at the beginning of each copy
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
                        f"scheme {spec_of(scheme)!r} cannot be written by a decoder head: what "
                        f"may follow depends on more than {_MOST_STATES:,} beginnings; give "
                        "one such as nd or ud"
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
    """bool[V]: the tokens of finite numbers; what is no number repeats its one token."""
    count = len(scheme.vocabulary())
    repeated = np.repeat(np.arange(count, dtype=np.uint32), width)
    values = scheme.decode(repeated, np.full(count, width, np.int32)).values
    return (np.arange(count) < scheme.paper_vocabulary_size) | np.isfinite(values)
