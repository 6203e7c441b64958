"""What schemes of fixed width share: a slot of ids for each position, and extra tokens.

An ordinary number has one token of each slot. What cannot be written so is one declared extra
token, repeated to the same width: every number has the same number of tokens, so a masked number
does not tell by its length whether it was zero.

All tokens of a number may be written several times over, as in "Decoding-based Regression",
Section 4.5. Then the majority at each position is read: first whether it is an ordinary number
or which extra, then each position among the copies that agree in this. A tie goes to the copy
that was written first.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    Channel,
    DecodedNumbers,
    Encoded,
    Failure,
    Next,
    Outcome,
    Scheme,
    outcomes_of,
)
from numtok.errors import UsageError, unknown
from numtok.numerals.column import Numerals, Rounded
from numtok.registry import Interval

#: The extra tokens, in the order of their ids after the counted ones.
EXTRAS = ("ZERO", "NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
SIGNS = ("+", "-")
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # of bases up to 36
POINTS = ("edge", "centre", "nearest")
MOST_CELLS = 2**50  # that float64 tells apart, with room for halves

_EXTRA_OF_OUTCOME = ("ZERO", *EXTRAS)  # from Outcome.ZERO on; both zeros share one
_VALUE_OF_EXTRA = {"ZERO": 0.0, "NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}
_MOST_COPIES = 15


def parts_of(
    numerals: Numerals, rounded: Rounded, exponents: Interval, least: int
) -> tuple[NDArray[np.uint8], Rounded]:
    """The outcomes [n] of numbers that do not fit into ``exponents``, or have no digits; and the
    numbers, of which these have an arbitrary mantissa and exponent within range.

    ``least`` is the smallest mantissa.
    """
    negative, mantissa, exponent = rounded
    over, under, zero = exponent > exponents.last, exponent < exponents.first, mantissa == 0
    outcomes = outcomes_of(numerals, over, under, zero)
    mantissa[zero] = least
    exponent = np.clip(exponent, exponents.first, exponents.last)
    return outcomes, Rounded(negative, mantissa, exponent)


class SlotScheme(Scheme):
    """Ordinary numbers have a token of each slot, all others an extra token throughout."""

    extras: ClassVar[tuple[str, ...]] = EXTRAS

    @property
    @abstractmethod
    def repeat(self) -> int:
        """How many times the tokens of a number are written."""

    @abstractmethod
    def slots(self) -> tuple[range, ...]:
        """The local ids that an ordinary number may have at each position of one copy; the last
        slot ends the counted ids."""

    @abstractmethod
    def counted_vocabulary(self) -> tuple[str, ...]:
        """The tokens that the paper counts, by local id."""

    @abstractmethod
    def write_numbers(self, numerals: Numerals) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Outcomes [n], and tokens [n, slots] of one copy, any where it is no ordinary number."""

    @property
    def digit_values(self) -> NDArray[np.float64]:
        letters = [DIGITS.index(one) if one in DIGITS else np.nan for one in self.vocabulary()]
        return np.fmax(super().digit_values, letters)

    def are_written(self, table: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of [n, slots] within :meth:`slots` are numbers that :meth:`follow` allows."""
        return np.ones(len(table), np.bool_)

    @abstractmethod
    def read_numbers(self, table: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values of rows of [n, slots] within :meth:`slots`.

        Rows that are not written come up only where copies differ: an infinity is an overflow
        then, NaN an underflow.
        """

    def follow(self, prefix: tuple[int, ...]) -> NDArray[np.int64] | range:
        """[k]: the ids that may follow a prefix of an ordinary number, shorter than one copy."""
        return self.slots()[len(prefix)]

    def remembered(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        """All of a prefix of an ordinary number that what follows depends on, but its length."""
        return ()

    def span(self, tokens: tuple[int, ...]) -> Bounds:
        """The interval of an ordinary number, or where the scheme is contiguous of a prefix."""
        (low,), (high,) = (ends.tolist() for ends in self.spans(np.array([tokens])))
        return Bounds(low, high)

    @abstractmethod
    def spans(self, table: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """:meth:`span` of many numbers [n, slots] at once: low and high ends."""

    @property
    @abstractmethod
    def covered(self) -> tuple[Bounds, Bounds]:
        """The values that negative and positive ordinary numbers stand for, all together."""

    @cached_property
    def paper_vocabulary_size(self) -> int:
        return self.slots()[-1].stop

    @cached_property
    def tokens_per_number(self) -> int:
        return len(self.slots()) * self.repeat

    def vocabulary(self) -> tuple[str, ...]:
        return self._every_token

    @cached_property
    def _every_token(self) -> tuple[str, ...]:
        return self.counted_vocabulary() + self.extras

    def encode(self, numerals: Numerals) -> Encoded:
        outcomes, tokens = self.write_numbers(numerals)
        special = np.flatnonzero(outcomes)
        ids = np.zeros(len(Outcome), np.uint32)
        for outcome, extra in zip(list(Outcome)[1:], _EXTRA_OF_OUTCOME, strict=True):
            if extra in self.extras:
                ids[outcome] = self.paper_vocabulary_size + self.extras.index(extra)
        tokens[special] = ids[outcomes[special], None]
        lengths = np.full(len(numerals), self.tokens_per_number, np.int32)
        return Encoded(np.tile(tokens, self.repeat).reshape(-1), lengths, outcomes)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        width = self.tokens_per_number
        whole = np.flatnonzero(lengths == width)
        firsts = np.cumsum(lengths, dtype=np.int64)[whole] - width
        table = tokens.astype(np.int64)[firsts[:, None] + np.arange(width)]
        slots = self.slots()
        copies = table.reshape(len(whole), self.repeat, len(slots))
        first, stop = np.array([(slot.start, slot.stop) for slot in slots]).T
        ordinary = ((copies >= first) & (copies < stop)).all(axis=2)
        ordinary[ordinary] = self.are_written(copies[ordinary])
        extra = copies[:, :, 0] - self.paper_vocabulary_size
        special = (extra >= 0) & (extra < len(self.extras)) & (copies == copies[:, :, :1]).all(2)
        formed = (ordinary | special).all(axis=1)
        whole, table = whole[formed], _majority(copies[formed], ordinary[formed])

        extra = table[:, 0] - self.paper_vocabulary_size
        number = extra < 0
        found = np.empty(len(table))
        found[number] = self.read_numbers(table[number])
        found[~number] = np.array([_VALUE_OF_EXTRA.get(name, np.nan) for name in self.extras])[
            extra[~number]
        ]
        failed = np.zeros(len(table), np.uint8)
        failed[number & np.isinf(found)] = Failure.OVERFLOW
        failed[number & np.isnan(found)] = Failure.UNDERFLOW
        failed[~number] = np.array([_failure_of(name) for name in self.extras])[extra[~number]]
        values[whole] = np.where(failed, np.nan, found)
        failures[whole] = failed
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        counted, width = self.paper_vocabulary_size, self.tokens_per_number
        allowed = np.zeros(counted + len(self.extras), np.bool_)
        if len(prefix) == width:
            return Next(allowed, may_end=True)
        copy = prefix[len(prefix) - len(prefix) % (width // self.repeat) :]
        if copy and copy[0] >= counted:
            allowed[copy[0]] = True
            state = copy[:1]
        else:
            state = self.remembered(copy)
            ids = self.follow(copy)
            allowed[slice(ids.start, ids.stop) if isinstance(ids, range) else ids] = True
            allowed[counted:] = not copy
        return Next(allowed, may_end=False, state=state)

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        copy = tokens[: self.tokens_per_number // self.repeat]
        if tokens and tokens == copy * self.repeat:  # as encode writes it
            tokens = copy
        elif len(tokens) == self.tokens_per_number and self.repeat > 1:
            copies = np.array(tokens).reshape(1, self.repeat, -1)
            tokens = tuple(
                _majority(copies, copies[:, :, 0] < self.paper_vocabulary_size)[0].tolist()
            )
        elif self.repeat > 1 or not tokens:
            return Bounds(-np.inf, np.inf)  # the other copies decide
        if tokens[0] >= self.paper_vocabulary_size:
            return self._interval_of_extra(self.extras[tokens[0] - self.paper_vocabulary_size])
        return self.span(tokens)

    def cells(
        self, tokens: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if tokens.shape[1] != self.tokens_per_number:
            return super().cells(tokens)
        copies = tokens.astype(np.int64).reshape(len(tokens), self.repeat, len(self.slots()))
        table = _majority(copies, copies[:, :, 0] < self.paper_vocabulary_size)
        extra = table[:, 0] - self.paper_vocabulary_size
        ends = np.empty((len(table), 2))
        ends[extra < 0] = np.column_stack(self.spans(table[extra < 0]))
        of_extras = np.array([self._interval_of_extra(name) for name in self.extras])
        ends[extra >= 0] = of_extras[extra[extra >= 0]]
        low, high = ends.T
        return low, high

    def _interval_of_extra(self, extra: str) -> Bounds:
        if extra in _VALUE_OF_EXTRA:
            return Bounds(_VALUE_OF_EXTRA[extra], _VALUE_OF_EXTRA[extra])
        negative, positive = self.covered
        return {
            "+UNDERFLOW": Bounds(0.0, positive.low),
            "-UNDERFLOW": Bounds(negative.high, 0.0),
            "+OVERFLOW": Bounds(positive.high, np.inf),
            "-OVERFLOW": Bounds(-np.inf, negative.low),
        }[extra]


def _failure_of(extra: str) -> Failure:
    if extra in _VALUE_OF_EXTRA:
        return Failure.NONE
    return Failure.OVERFLOW if extra.endswith("OVERFLOW") else Failure.UNDERFLOW


def _majority(copies: NDArray[np.int64], ordinary: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[n, slots]: what most of [n, copies, slots] say at each position."""
    if copies.shape[1] == 1:
        return copies[:, 0]
    kind = _voted(copies[:, :, 0], np.ones_like(ordinary))
    alike = ordinary == np.take_along_axis(ordinary, kind[:, None], axis=1)
    chosen = [_voted(copies[:, :, place], alike) for place in range(copies.shape[2])]
    return np.take_along_axis(copies, np.stack(chosen, axis=1)[:, None], axis=1)[:, 0]


def _voted(tokens: NDArray[np.int64], counting: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[n]: the first copy that has the most frequent token among the counting ones."""
    votes = ((tokens[:, :, None] == tokens[:, None]) & counting[:, None]).sum(axis=2)
    first: NDArray[np.int64] = np.where(counting, votes, -1).argmax(axis=1)
    return first


def check_setting(name: str, key: str, value: int, allowed: Interval) -> None:
    """Refuse a number outside what is allowed."""
    if value not in allowed:
        raise UsageError(
            f"{name}: {key}={value} is not possible; allowed are {allowed.first} to {allowed.last}"
        )


def check_shared_settings(
    name: str, base: int, point: str, repeat: int, most: int = len(DIGITS)
) -> None:
    """Refuse a base, a point or a number of copies that is not possible."""
    check_setting(name, "base", base, Interval(2, most))
    check_setting(name, "repeat", repeat, Interval(1, _MOST_COPIES))
    if point not in POINTS:
        raise unknown(f"point of {name!r}", point, POINTS)


def check_digits(name: str, key: str, digits: int, base: int) -> None:
    """Refuse more digits than float64 can tell apart."""
    most = next(count for count in range(50, 0, -1) if base**count <= MOST_CELLS)
    check_setting(name, key, digits, Interval(1, most))
