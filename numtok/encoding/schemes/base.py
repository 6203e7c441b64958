"""The contract of a scheme: numbers to tokens and back, with every loss declared.

A scheme is a frozen dataclass whose fields are its settings. Its token ids are
local, 0 to ``len(vocabulary()) - 1``: first the tokens that the paper counts,
then one declared token for each extra (zero, NaN, overflow, ...). ``codec``
shifts them into the vocabulary of a whole text. The contract suite in
``contract`` holds for every scheme, also for one that nobody here has seen.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.numerals.column import Numerals
from numtok.registry import Registry, spec_of

if TYPE_CHECKING:
    from numtok.encoding.text_tokenizers.base import FittedTokenizer


class Outcome(IntEnum):
    """What became of a number that a scheme cannot write as it is; 0 is an ordinary number."""

    NUMBER = 0
    ZERO = 1
    NEGATIVE_ZERO = 2
    NAN = 3
    POSITIVE_INFINITY = 4
    NEGATIVE_INFINITY = 5
    POSITIVE_UNDERFLOW = 6
    NEGATIVE_UNDERFLOW = 7
    POSITIVE_OVERFLOW = 8
    NEGATIVE_OVERFLOW = 9


#: Outcomes that lose a number: encode counts and lists them, ``--on-clip error`` stops at them.
LOSSES = (
    Outcome.POSITIVE_UNDERFLOW,
    Outcome.NEGATIVE_UNDERFLOW,
    Outcome.POSITIVE_OVERFLOW,
    Outcome.NEGATIVE_OVERFLOW,
)


class Failure(IntEnum):
    """Why tokens have no value; 0 means that they have one."""

    NONE = 0
    MALFORMED = 1  # not a sequence that the scheme writes
    UNDERFLOW = 2
    OVERFLOW = 3


#: float32[n], or float64[n] of a scheme that is exact.
Channel = NDArray[np.float32] | NDArray[np.float64]


class Encoded(NamedTuple):
    """``n`` numbers as a scheme writes them."""

    tokens: NDArray[np.uint32]  # [sum of lengths], local ids, number after number
    lengths: NDArray[np.int32]  # [n] tokens of each number
    outcomes: NDArray[np.uint8]  # [n] Outcome
    channel: Channel | None = None  # [n] the finite value beside the tokens, where used


@dataclass(frozen=True, eq=False)
class DecodedNumbers:
    """``n`` numbers read back."""

    values: NDArray[np.float64]  # [n], NaN where a failure is set (and for NaN itself)
    failures: NDArray[np.uint8]  # [n] Failure
    #: Literals, where tokens keep them; of what is no number the characters that there are.
    written: tuple[str, ...] | None = field(default=None)

    def literal(self, index: int) -> str:
        """The literal of one number: as written where the tokens say so, else Python's ``repr``."""
        if self.written is not None:
            return self.written[index]
        return repr(float(self.values[index]))


class Bounds(NamedTuple):
    """The values that are written as one token sequence: from ``low`` to ``high``."""

    low: float
    high: float


class Next(NamedTuple):
    """What may follow a prefix of a number's tokens, for constrained decoding."""

    allowed: NDArray[np.bool_]  # [vocabulary]
    may_end: bool  # the prefix is a whole number
    #: Equal for prefixes of one length that are followed by the same, now and later, and in the
    #: same order of values; None where that is not known, so that each prefix stands for itself.
    state: Hashable = None


class Parted(NamedTuple):
    """What the tokens of a number write where they are those of text: a numeral, None where there
    is none, and the bytes of text that share a token with it."""

    before: bytes
    literal: str | None
    after: bytes


class Scheme(ABC):
    """Numbers as tokens. Subclasses are final frozen dataclasses; their fields are settings.

    Class attributes: ``revision`` (rises when the output changes), ``source`` (paper, table or
    equation), ``paper_vocabulary_size`` is the number of tokens the paper counts, ``embedder`` and
    ``head`` name the defaults that training resolves (:attr:`parts`), ``golden`` is a table of
    (literal, tokens, decoded literal) that the contract suite checks and digests, ``digest`` the
    digest of a fixed sample.
    ``shares_text`` says that, among text, numbers are written in its tokens (:meth:`of_text`).
    ``channel`` says that a value stands beside the tokens, ``exact`` that it is float64, not
    float32. ``absolute`` says that numbers are written on a grid of equal steps, so that errors are
    absolute, ``unit_interval`` that it is a grid of [0, 1] and any other number overflows.
    ``contiguous`` says that the numbers that begin with the same tokens are an interval, which
    :meth:`interval` gives for a prefix; behind the first token ids rise or fall with the values.
    ``same_tokens_as`` names a scheme with the same output, from which this one differs only in what
    training does unless asked otherwise. ``max_digits`` says to people what numbers that
    :meth:`count_truncated` counts have more of.
    """

    revision: ClassVar[int]
    source: ClassVar[str]
    embedder: ClassVar[str] = "lookup"
    head: ClassVar[str] = "token"
    normalizer: ClassVar[str] = "none"
    shares_text: ClassVar[bool] = False
    channel: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    absolute: ClassVar[bool] = False
    unit_interval: ClassVar[bool] = False
    contiguous: ClassVar[bool] = False
    same_tokens_as: ClassVar[str] = ""
    max_digits: ClassVar[str] = ""
    golden: ClassVar[tuple[tuple[str, str, str], ...]]
    digest: ClassVar[str]

    @property
    @abstractmethod
    def paper_vocabulary_size(self) -> int:
        """Tokens in the vocabulary as the paper counts it; the declared extras come after."""

    @property
    @abstractmethod
    def tokens_per_number(self) -> int | None:
        """The fixed number of tokens of every number, or None where it varies."""

    @property
    def title(self) -> str:
        """What people know it by: its spec, and whatever sets it apart from others of that spec
        but what it has learnt."""
        return spec_of(self)

    @property
    def parts(self) -> tuple[str, str]:
        """Specs of the embedder and of the head that training resolves: :attr:`embedder` and
        :attr:`head`, with the settings of the scheme where they have them, too."""
        return self.embedder, self.head

    def suited(self, largest: float, decimals: int) -> "Scheme":
        """The same for numbers up to ``largest``, written with so many decimals, where settings say
        how many places a number has, or how large it may be."""
        return self

    @property
    def needs_sample(self) -> bool:
        """Whether :meth:`fit` has something to learn: else it looks at nothing."""
        return False

    def fit(self, literals: Mapping[str, int]) -> "Scheme":
        """The scheme as it is learnt from numbers as written, each with how often it comes.

        What is learnt is a field marked ``registry.LEARNT``, and a pure function of the counts,
        whatever their order. A scheme that has not learnt yet keeps the contract all the same.
        """
        return self

    def of_text(self, text: "FittedTokenizer") -> "Scheme":
        """The scheme as it writes numbers among text in these tokens: the same, unless it has none
        of its own (:attr:`in_text`)."""
        return self

    @property
    def in_text(self) -> bool:
        """Whether numbers are written in the tokens of text: its vocabulary is then theirs, which
        of them are a number only their place in a row says, and a token may reach over the border
        of one (:meth:`parted`)."""
        return False

    @property
    def own_tokens(self) -> NDArray[np.bool_]:
        """bool[vocabulary]: which tokens are in any number that may be said; all, unless it is
        written in those of text."""
        return np.ones(len(self.vocabulary()), np.bool_)

    def parted(self, tokens: Sequence[int]) -> Parted:
        """What a number's tokens write where they are those of text."""
        raise NotImplementedError

    @property
    def held_digits(self) -> str:
        """For a message: how much of a number the value beside its token holds."""
        kind, many = ("float64", "fifteen") if self.exact else ("float32", "seven")
        return f"the one value beside a token, {kind}, holds about {many} of their digits"

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """The smallest and largest magnitude that is written as itself."""

    @property
    @abstractmethod
    def error(self) -> float:
        """The largest |decoded - value| of a number within :attr:`bounds` where errors are
        absolute, else the largest |decoded - value| / |value|."""

    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens by local id, each a distinct string without brackets or spaces."""

    @property
    def factors(self) -> NDArray[np.float64]:
        """float64[vocabulary]: what a number's one token multiplies its channel by.

        0 for an underflow and infinity for an overflow that keep their digits in the channel; NaN
        for other tokens, which stand for what they are whatever the channel holds, and throughout
        where there is no channel or a number is no such product.

        >>> SCHEMES.build("numgpt,exponents=-1..1").factors
        array([ 0.1,  1. , 10. ,  0. ,  inf,  nan,  nan,  nan])
        """
        return np.full(len(self.vocabulary()), np.nan)

    @property
    def digit_values(self) -> NDArray[np.float64]:
        """float64[vocabulary]: what each token is worth that is a digit, or several, of a number
        whose digits stand one behind the other; NaN for others.

        >>> SCHEMES.build("digits").digit_values[8:12]
        array([ 8.,  9., nan, nan])
        """
        names = self.vocabulary()
        return np.array([int(one) if one.isascii() and one.isdigit() else np.nan for one in names])

    @property
    def splits(self) -> bool:
        """Whether a number is divided between token and channel, so that neither says it alone."""
        return len(np.unique(self.factors[~np.isnan(self.factors)])) > 1

    @abstractmethod
    def encode(self, numerals: Numerals) -> Encoded:
        """Write numbers. Never fails: what cannot be written gets a declared token."""

    def encode_among(self, numerals: Numerals, in_answer: NDArray[np.bool_]) -> Encoded:
        """As :meth:`encode`, of numbers of texts; ``in_answer``, bool[n]: which are part of an
        answer, for schemes that write those otherwise."""
        return self.encode(numerals)

    def count_truncated(self, tokens: NDArray[np.integer[Any]]) -> int:
        """How many numbers, in local ids [tokens] one number after the other, are longer than
        embedders of a fixed width see that are made for the scheme. Nothing is lost in the
        tokens."""
        return 0

    @abstractmethod
    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        """Read numbers back; any tokens at all give a value or a named failure, never an error.

        tokens
            uint32[sum of the lengths], local ids, number after number.
        lengths
            int32[n], the tokens of each number.
        channel
            float32[n] or float64[n], the value beside each number, of a scheme with a channel.
        """

    @abstractmethod
    def next(self, prefix: tuple[int, ...]) -> Next:
        """What may follow ``prefix``, itself allowed so far, in a well-formed number."""

    @abstractmethod
    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        """The values that a well-formed token sequence stands for.

        A point (low == high) where it stands for one value alone, as zero does; (NaN, NaN) for
        NaN. Intervals of different sequences overlap at most in their ends, and together they
        cover the line. (Where several copies are written, sequences with the same majority have
        the same interval. Where a number is divided between token and channel, the interval of a
        token is the smallest that holds all its numbers, of both signs.)

        A contiguous scheme takes prefixes, too: then it is all from the lowest to the highest
        value that begins so, and the whole line where what follows decides.
        """

    def cells(
        self, tokens: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """:meth:`interval` of the rows of int[n, k]: float64[n] low and high ends.

        ``k`` is the scheme's width; a contiguous scheme takes shorter rows, too.

        >>> SCHEMES.build("nd").cells(np.array([[0, 2], [9, 9]]))
        (array([0.02, 0.99]), array([0.03, 1.  ]))
        """
        intervals = [self.interval(path) for path in map(tuple, tokens.tolist())]
        low, high = np.array(intervals, np.float64).reshape(-1, 2).T
        return low, high

    def ascending(self, prefix: tuple[int, ...]) -> NDArray[np.int64] | None:
        """int64[k]: what may follow a prefix, in the order of the values it leads to; NaN is last.

        With it a distribution function and its inverse are exact, digit by digit. None for a
        scheme that is not contiguous, and where several copies are written.

        >>> SCHEMES.build("nd,base=4").ascending((3,))
        array([0, 1, 2, 3])
        """
        if not self.contiguous:
            return None
        tokens = np.flatnonzero(self.next(prefix).allowed)
        if prefix:  # the ids rise or fall with the values
            first, last = (self.interval((*prefix, int(token))) for token in tokens[[0, -1]])
            tokens = tokens if first.low <= last.low else tokens[::-1]
            apart = len(tokens) == 1 or first.low != last.low
        else:
            low, high = self.cells(tokens[:, None])
            order = np.lexsort((high, low))
            tokens, low, high = tokens[order], low[order], high[order]
            apart = not (low[1:] < high[:-1]).any()
        return tokens if apart else None


SCHEMES: Registry[Scheme] = Registry("numtok.encoding.schemes", "scheme")


def outcomes_of(
    numerals: Numerals,
    over: NDArray[np.bool_] | None = None,
    under: NDArray[np.bool_] | None = None,
    zero: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint8]:
    """uint8[n]: what becomes of numbers of which some (bool[n]) are above or below all that can be
    written, or zeros that are not written as they are. Infinities and NaN are told by the values.
    """
    outcomes = np.zeros(len(numerals), np.uint8)
    for chosen, outcome in (
        (over, Outcome.POSITIVE_OVERFLOW),
        (under, Outcome.POSITIVE_UNDERFLOW),
        (zero, Outcome.ZERO),
    ):
        if chosen is not None:
            outcomes[chosen] = outcome
    infinite = np.isinf(numerals.values)
    if infinite.any():
        above, _ = numerals.out_of_float64()  # 1e400 is no infinity
        outcomes[infinite & ~above] = Outcome.POSITIVE_INFINITY
    outcomes[(outcomes > 0) & np.signbit(numerals.values)] += 1  # the negative twin comes next
    outcomes[np.isnan(numerals.values)] = Outcome.NAN
    return outcomes


def names_of(outcomes: NDArray[np.uint8]) -> dict[str, int]:
    """How often each outcome other than an ordinary number occurs.

    >>> names_of(np.array([0, 1, 1, 8], np.uint8))
    {'zero': 2, 'positive_overflow': 1}
    """
    counts = np.bincount(outcomes, minlength=len(Outcome))
    return {
        outcome.name.lower(): int(counts[outcome])
        for outcome in Outcome
        if outcome is not Outcome.NUMBER and counts[outcome]
    }
