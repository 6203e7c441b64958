"""The contract of a scheme: numbers to tokens and back, with every loss declared.

A scheme is a frozen dataclass whose fields are its settings. Its token ids are local, 0 to
``len(vocabulary()) - 1``: first the tokens that the paper counts, then one token for each of
:data:`EXTRAS` that the scheme needs. ``encoding/codec.py`` shifts them into the vocabulary of a
whole text. The contract suite in ``_contract.py`` holds for every scheme, including plugins.

:class:`Scheme` is what every scheme defines. The classes behind it are capabilities: a scheme
derives from one of them as well if it has a value channel (:class:`ChannelScheme`), is
fitted to data (:class:`FittedScheme`), or leaves numbers to the text tokenizer
(``whole_text.TextScheme``).
"""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Int32s, UInt8s, UInt32s
from numtok.declaration import as_spec, settings_in
from numtok.encoding.sample_literals import FORMS, bit_patterns, carries_and_ties, decades, decimals
from numtok.numerals.column import Numerals
from numtok.registry import Registry, spec_of


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


#: Outcomes that lose a number: encode counts and lists them, ``--on-overflow error`` stops at them.
LOSSES = (
    Outcome.POSITIVE_UNDERFLOW,
    Outcome.NEGATIVE_UNDERFLOW,
    Outcome.POSITIVE_OVERFLOW,
    Outcome.NEGATIVE_OVERFLOW,
)


#: Names of the tokens that no paper counts, in the order in which they end a vocabulary.
EXTRAS = ("ZERO", "NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")


class Failure(IntEnum):
    """Why tokens have no value; 0 means that they have one."""

    NONE = 0
    MALFORMED = 1  # not a sequence that the scheme writes
    UNDERFLOW = 2
    OVERFLOW = 3


#: float32[n], or float64[n] if the scheme is exact.
Channel = NDArray[np.float32] | Floats


class Encoded(NamedTuple):
    """``n`` numbers as a scheme writes them."""

    tokens: UInt32s  # [sum of lengths], local ids, number after number
    lengths: Int32s  # [n] tokens of each number
    outcomes: UInt8s  # [n] Outcome
    channel: Channel | None = None  # [n] the finite value beside the tokens, where used


@dataclass(frozen=True, eq=False)
class DecodedNumbers:
    """``n`` numbers read back."""

    values: Floats  # [n], NaN where a failure is set (and for NaN itself)
    failures: UInt8s  # [n] Failure
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


class LargestError(NamedTuple):
    """The largest |decoded - value| if ``absolute``, else the largest |decoded - value| / |value|.

    Errors are absolute if numbers are rounded to equal steps.
    """

    size: float
    absolute: bool = False


class DigitLimit(NamedTuple):
    """The number of digits that an embedder of a fixed width sees."""

    whole: int
    decimals: int

    def __str__(self) -> str:
        return f"{self.whole} digits before the point or {self.decimals} behind it"


@dataclass(frozen=True, kw_only=True)
class SchemeDefaults:
    """The parts that encoding and training use with a scheme by default.

    embedder, head, normalizer
        Specs.
    embedder_settings, head_settings
        Settings of the scheme that are passed on to the embedder and to the head.
    same_tokens_as
        A scheme with the same output: this one differs only in its other defaults.
    digits
        True if number terms may take tokens that are digits for their values. False if other tokens
        stand between the digits of a number, or digits have other uses.
    embedder_digits
        The digits that the default embedder may be limited to. ``encode`` counts longer numbers,
        whose tokens lose nothing.
    sized
        True if settings default to the size of the data's numbers (:meth:`Scheme.suited`).
    """

    embedder: str = "lookup"
    head: str = "token"
    normalizer: str = "none"
    embedder_settings: tuple[str, ...] = ()
    head_settings: tuple[str, ...] = ()
    same_tokens_as: str = ""
    digits: bool = True
    embedder_digits: DigitLimit | None = None
    sized: bool = False


class Next(NamedTuple):
    """What may follow a prefix of a number's tokens, for constrained decoding."""

    allowed: Bools  # [vocabulary]
    may_end: bool  # the prefix is a whole number
    #: Equal for prefixes of one length that are followed by the same, now and later, and in the
    #: same order of values; None where that is not known, so that each prefix stands for itself.
    state: Hashable = None


class OutputDigest:
    """The digest of a class's output, computed once. numtok's own schemes state theirs, so that a
    change of their output without a new revision fails the contract suite."""

    def __get__(self, scheme: "Scheme | None", kind: "type[Scheme]") -> str:
        return _digest_of_class(kind)


class Scheme(ABC):
    """Numbers as tokens. Subclasses are final frozen dataclasses; their fields are settings.

    revision
        Raise it when the output changes.
    source
        Paper, table or equation.
    golden
        Rows (literal, tokens, decoded literal) at the default settings, checked by the contract
        suite.
    """

    revision: ClassVar[int]
    source: ClassVar[str]
    golden: ClassVar[tuple[tuple[str, str, str], ...]]
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults()
    if TYPE_CHECKING:
        digest: ClassVar[str]
    else:
        digest = OutputDigest()

    @property
    @abstractmethod
    def tokens_per_number(self) -> int | None:
        """The number of tokens of every number; None if it varies."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """The smallest and largest magnitude that is written as itself. From 0 to 1 means that
        negative numbers overflow."""

    @property
    @abstractmethod
    def error(self) -> LargestError:
        """The largest error of a decoded number within :attr:`bounds`."""

    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens by local id, each a distinct string without brackets or spaces.

        Tokens named as in :data:`EXTRAS` that end it are not counted by the paper.
        """

    @abstractmethod
    def encode(self, numerals: Numerals) -> Encoded:
        """Write numbers. Never fails: a number that cannot be written gets a declared token."""

    @abstractmethod
    def decode(
        self, tokens: UInt32s, lengths: Int32s, channel: Channel | None = None
    ) -> DecodedNumbers:
        """Read numbers back; any tokens at all give a value or a named failure, never an error.

        tokens
            uint32[sum of the lengths], local ids, number after number.
        lengths
            int32[n], the tokens of each number.
        channel
            float32[n] or float64[n], the value of each number (:class:`ChannelScheme`).
        """

    @abstractmethod
    def next(self, prefix: tuple[int, ...]) -> Next:
        """What may follow ``prefix``, itself allowed so far, in a well-formed number."""

    @abstractmethod
    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        """The values that a well-formed token sequence stands for.

        A point (low == high) if it stands for one value, as zero does; (NaN, NaN) for NaN.
        Intervals of different sequences overlap at most in their ends, and together they cover the
        line. (If several copies are written, sequences with the same majority have the same
        interval. If a number is divided between token and channel, the interval of a token is the
        smallest that holds all its numbers, of both signs.)
        """

    def suited(self, largest: float, decimals: int) -> Self:
        """Return the scheme for numbers up to ``largest`` with this many decimals: another one only
        if ``defaults`` says ``sized``."""
        return self

    # --- derived ------------------------------------------------------------------------------

    @final
    @property
    def paper_vocabulary_size(self) -> int:
        """Number of tokens in the vocabulary as the paper counts it, without :data:`EXTRAS`."""
        names = self.vocabulary()
        return len(names) - next(
            (count for count, name in enumerate(reversed(names)) if name not in EXTRAS), len(names)
        )

    @final
    @property
    def unit_interval(self) -> bool:
        """True if only 0 to 1 is written, in equal steps."""
        return self.error.absolute and self.bounds == (0, 1)

    @final
    @property
    def parts(self) -> tuple[str, str]:
        """Specs of the default embedder and head, with the settings that they share."""
        chosen = self.defaults
        return (
            self._part(chosen.embedder, chosen.embedder_settings),
            self._part(chosen.head, chosen.head_settings),
        )

    def _part(self, name: str, shared: tuple[str, ...]) -> str:
        parts = [name]
        for one in (settings_in(type(self))[key] for key in shared):
            if (value := getattr(self, one.name)) != one.default:
                parts.append(f"{one.flag}={as_spec(value)}")
        return ",".join(parts)


class ChannelScheme(Scheme):
    """A scheme with a value beside the tokens of each number, for embedders and value heads.

    exact
        Whether the value is float64 rather than float32.
    """

    exact: ClassVar[bool] = False

    @property
    def factors(self) -> Floats:
        """float64[vocabulary]: the factor by which a number's one token multiplies its channel.

        0 for an underflow and infinity for an overflow that keep their digits in the channel; NaN
        for tokens that stand for a number whatever the channel holds, and for all tokens if a
        number is not such a product.

        >>> SCHEMES.build("numgpt,exponents=-1..1").factors
        array([ 0.1,  1. , 10. ,  0. ,  inf,  nan,  nan,  nan])
        """
        return np.full(len(self.vocabulary()), np.nan)

    @final
    @property
    def splits(self) -> bool:
        """Whether a number is divided between token and channel, so that neither is the number."""
        return len(np.unique(self.factors[~np.isnan(self.factors)])) > 1


class FittedScheme(Scheme):
    """A scheme that learns from the numbers of the train split.

    What it learns is a field marked ``registry.LEARNT``. Before it has learned anything it keeps
    the contract all the same.
    """

    @property
    @abstractmethod
    def needs_sample(self) -> bool:
        """Whether :meth:`fit` has something to learn; otherwise it returns the scheme itself."""

    @abstractmethod
    def fit(self, literals: Mapping[str, int]) -> Self:
        """Fit the scheme to numbers as written, each with its count: a pure function of the counts,
        whatever their order."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The spec, and what sets the scheme apart from others of that spec other than what it has
        learned."""


SCHEMES = Registry[Scheme]("numtok.encoding.schemes", "scheme", Scheme)


def needs_sample(scheme: Scheme) -> TypeGuard[FittedScheme]:
    """Return whether a scheme has something to learn from numbers."""
    return isinstance(scheme, FittedScheme) and scheme.needs_sample


def fitted(scheme: Scheme, literals: Mapping[str, int]) -> Scheme:
    """Return a scheme fitted to numbers, if it learns anything."""
    return scheme.fit(literals) if isinstance(scheme, FittedScheme) else scheme


def title_of(scheme: Scheme) -> str:
    """Return the name that people know a scheme by."""
    return scheme.title if isinstance(scheme, FittedScheme) else spec_of(scheme)


def is_exact(scheme: Scheme) -> bool:
    """Return whether a scheme has a float64 value beside each number."""
    return isinstance(scheme, ChannelScheme) and scheme.exact


def splits_numbers(scheme: Scheme) -> TypeGuard[ChannelScheme]:
    """Return whether a scheme divides numbers between token and channel."""
    return isinstance(scheme, ChannelScheme) and scheme.splits


def learnt(scheme: Scheme) -> Scheme:
    """Return the scheme fitted to the literals of its golden rows, each once."""
    return fitted(scheme, {literal: 1 for literal, _, _ in scheme.golden})


def plain(kind: type[Scheme]) -> Scheme:
    """Return the scheme at its default settings. A class with settings that have no default names
    some in ``checked_at``."""
    spec = getattr(kind, "checked_at", None)
    return kind() if spec is None else SCHEMES.build(spec)


def at_defaults(kind: type[Scheme]) -> Scheme:
    """Return the scheme that the golden rows and the digest of a class are of."""
    return learnt(plain(kind))


def digest_of(scheme: Scheme) -> str:
    """Digest the tokens, lengths and channel of a fixed sample: 16 hexadecimal digits."""
    scheme, rng = learnt(scheme), random.Random(0)
    literals = [*FORMS, *carries_and_ties(), *decades()]
    literals += [*bit_patterns(rng, 500), *decimals(rng, 500, -10, 12)]
    tokens, lengths, _, channel = scheme.encode(Numerals.of_literals(literals))
    digest = hashlib.sha256(tokens.astype("<u4").tobytes() + lengths.astype("<i4").tobytes())
    digest.update(
        b"" if channel is None else channel.astype(channel.dtype.newbyteorder("<")).tobytes()
    )
    return digest.hexdigest()[:16]


@cache
def _digest_of_class(kind: type[Scheme]) -> str:
    return digest_of(at_defaults(kind))


def outcomes_of(
    numerals: Numerals,
    over: Bools | None = None,
    under: Bools | None = None,
    zero: Bools | None = None,
) -> UInt8s:
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


def names_of(outcomes: UInt8s) -> dict[str, int]:
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
