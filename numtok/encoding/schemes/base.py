"""base: interface for schemes, which convert numbers to tokens and back.

A scheme is a frozen dataclass whose fields are its settings. A number outside the range of a scheme
is encoded as a special token, never silently as another number. Token ids are local, 0 to
``len(vocabulary()) - 1``: first the tokens defined in the scheme's paper, then one token for each
of :data:`EXTRAS` that the scheme needs. ``encoding/codec.py`` shifts these ids into the vocabulary
for whole texts. The contract suite in ``_contract.py`` checks every scheme, including plugins.

:class:`Scheme` defines what every scheme implements. The other base classes add capabilities: a
scheme derives from one of them if it has a value channel (:class:`ChannelScheme`), is fitted to
data (:class:`FittedScheme`), or leaves numbers to the text tokenizer (``whole_text.TextScheme``).
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
from numtok.declaration import settings_in
from numtok.encoding.sample_literals import FORMS, bit_patterns, carries_and_ties, decades, decimals
from numtok.numerals.column import Numerals
from numtok.registry import Registry, spec_of
from numtok.setting_values import as_spec


class Outcome(IntEnum):
    """Outcome of encoding a number. 0 is an ordinary number; numbers with any other outcome are
    encoded as a special token."""

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


#: Outcomes that lose the number. encode counts and lists them; ``--on-overflow error`` stops.
LOSSES = (
    Outcome.POSITIVE_UNDERFLOW,
    Outcome.NEGATIVE_UNDERFLOW,
    Outcome.POSITIVE_OVERFLOW,
    Outcome.NEGATIVE_OVERFLOW,
)


#: Names of the tokens that no paper defines, in their order at the end of a vocabulary.
EXTRAS = ("ZERO", "NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")


class Failure(IntEnum):
    """Reason why a token sequence has no value. 0 means that the sequence has a value."""

    NONE = 0
    MALFORMED = 1  # not a sequence that the scheme writes
    UNDERFLOW = 2
    OVERFLOW = 3


#: float32[n], or float64[n] if the scheme is exact.
Channel = NDArray[np.float32] | Floats


class Encoded(NamedTuple):
    """Result of encoding ``n`` numbers with a scheme."""

    tokens: UInt32s  # [sum of lengths], concatenated local ids
    lengths: Int32s  # [n] number of tokens of each number
    outcomes: UInt8s  # [n] Outcome
    channel: Channel | None = None  # [n] finite value besides the tokens, if the scheme has one


@dataclass(frozen=True, eq=False)
class DecodedNumbers:
    """Result of decoding ``n`` numbers with a scheme."""

    values: Floats  # [n], NaN if a failure is set (and for NaN itself)
    failures: UInt8s  # [n] Failure
    #: Literals, if the tokens keep them; for malformed tokens, the characters that they contain.
    written: tuple[str, ...] | None = field(default=None)

    def literal(self, index: int) -> str:
        """Return one number as text: as it was written if the tokens keep the literal, otherwise
        the ``repr`` of its value."""
        if self.written is not None:
            return self.written[index]
        return repr(float(self.values[index]))


class Bounds(NamedTuple):
    """Interval from ``low`` to ``high``, such as the values that share a token sequence, or the
    magnitudes that a scheme represents."""

    low: float
    high: float


class LargestError(NamedTuple):
    """Largest error of decoded numbers: the largest |decoded - value| if ``absolute``, otherwise
    the largest |decoded - value| / |value|.

    Errors are absolute if numbers are rounded to equal steps.
    """

    size: float
    absolute: bool = False


class DigitLimit(NamedTuple):
    """Largest number of digits before and after the decimal point that an embedder of fixed width
    can read."""

    whole: int
    decimals: int

    def __str__(self) -> str:
        return f"{self.whole} digits before the decimal point or {self.decimals} after it"


@dataclass(frozen=True, kw_only=True)
class SchemeDefaults:
    """Defaults for encoding and training with a scheme.

    embedder, head, normalizer
        Specs of the default embedder, head and normalizer.
    embedder_settings, head_settings
        Names of the scheme settings that are passed on to the embedder and to the head.
    same_tokens_as
        Name of a scheme that writes the same tokens and differs only in its other defaults.
    digits
        True if loss terms may treat digit tokens as the digits of a value. False if other tokens
        occur between the digits of a number, or if digits have other uses.
    embedder_digits
        Largest number of digits that the default embedder can read. ``encode`` counts longer
        numbers, whose tokens nevertheless contain every digit.
    sized
        True if the default settings depend on the numbers in the data (:meth:`Scheme.suited`).
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
    """Tokens that may follow a prefix of a number, for constrained decoding."""

    allowed: Bools  # [vocabulary]
    may_end: bool  # whether the prefix is a complete number
    #: Equal for prefixes of equal length with the same continuations, now and later, and in the
    #: same order of values. None if unknown: then each prefix is its own state.
    state: Hashable = None


class OutputDigest:
    """Descriptor that computes the digest of a scheme class's output on first use.

    The schemes in numtok define their digest as a constant instead. The contract suite therefore
    fails if the output of one of these schemes changes without a new revision.
    """

    def __get__(self, scheme: "Scheme | None", kind: "type[Scheme]") -> str:
        return _digest_of_class(kind)


class Scheme(ABC):
    """Base class for number schemes. Subclasses are final frozen dataclasses whose fields are
    settings.

    revision
        Version of the output. Increment it when the output changes.
    source
        Paper, table or equation that defines the scheme.
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
        """Number of tokens per number; None if it varies."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """Smallest and largest magnitude that the scheme represents. If they are 0 and 1, negative
        numbers overflow."""

    @property
    @abstractmethod
    def error(self) -> LargestError:
        """Largest error of a decoded number within :attr:`bounds`."""

    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """Return the tokens, indexed by local id: distinct strings without brackets or spaces.

        Tokens named in :data:`EXTRAS` come last. They are not part of the vocabulary defined in the
        scheme's paper.
        """

    @abstractmethod
    def encode(self, numerals: Numerals) -> Encoded:
        """Encode the n numbers in ``numerals``. Encoding never fails: an out-of-range number is
        encoded as a special token."""

    @abstractmethod
    def decode(
        self, tokens: UInt32s, lengths: Int32s, channel: Channel | None = None
    ) -> DecodedNumbers:
        """Decode n numbers. Any token sequence gives a value or a :class:`Failure`, never an
        exception.

        tokens
            uint32[sum of the lengths], local ids, concatenated over all numbers.
        lengths
            int32[n], number of tokens of each number.
        channel
            float32[n] or float64[n], channel value of each number, if the scheme is a
            :class:`ChannelScheme`.
        """

    @abstractmethod
    def next(self, prefix: tuple[int, ...]) -> Next:
        """Return the tokens that may follow ``prefix`` in a well-formed number. The prefix must
        itself be allowed."""

    @abstractmethod
    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        """Return the interval of values that a well-formed token sequence represents.

        The interval is a point (low == high) for a single value such as zero, and (NaN, NaN) for
        NaN. Intervals of different sequences overlap at most at their ends, and together they cover
        the number line. If a number is written in several copies, sequences with the same majority
        have the same interval. If a number is split between token and channel, the interval of a
        token is the smallest interval that contains all numbers with this token, of both signs.
        """

    def suited(self, largest: float, decimals: int) -> Self:
        """Return the scheme with settings that suit numbers up to ``largest`` with up to
        ``decimals`` decimals. The scheme is unchanged unless ``defaults.sized`` is True."""
        return self

    # --- derived ------------------------------------------------------------------------------

    @final
    @property
    def paper_vocabulary_size(self) -> int:
        """Size of the vocabulary defined in the scheme's paper, that is, without :data:`EXTRAS`."""
        names = self.vocabulary()
        return len(names) - next(
            (count for count, name in enumerate(reversed(names)) if name not in EXTRAS), len(names)
        )

    @final
    @property
    def unit_interval(self) -> bool:
        """True if the scheme represents only numbers from 0 to 1, in equal steps."""
        return self.error.absolute and self.bounds == (0, 1)

    @final
    @property
    def parts(self) -> tuple[str, str]:
        """Specs of the default embedder and of the default head, including the settings that the
        scheme passes on to them."""
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
    """Base class for schemes with a value channel. The channel stores one value per number, in
    addition to its tokens, for embedders and value heads.

    exact
        True if the channel is float64 rather than float32.
    """

    exact: ClassVar[bool] = False

    @property
    def factors(self) -> Floats:
        """Factor of each token, float64[vocabulary]. A number is its channel value, multiplied by
        the factor of its single token.

        The factor is 0 for an underflow and infinity for an overflow whose digits are kept in the
        channel. It is NaN for tokens that ignore the channel, and for all tokens if the scheme's
        numbers are not such products.

        >>> SCHEMES.build("numgpt,exponents=-1..1").factors
        array([ 0.1,  1. , 10. ,  0. ,  inf,  nan,  nan,  nan])
        """
        return np.full(len(self.vocabulary()), np.nan)

    @final
    @property
    def splits(self) -> bool:
        """True if a number is split between its token and the channel."""
        return len(np.unique(self.factors[~np.isnan(self.factors)])) > 1


class FittedScheme(Scheme):
    """Base class for schemes that are fitted to the numbers in the train split.

    Fitted state is stored in fields marked ``declaration.LEARNED``. All methods must also work
    before fitting.
    """

    @property
    @abstractmethod
    def needs_sample(self) -> bool:
        """True if :meth:`fit` needs numbers. Otherwise, :meth:`fit` returns the scheme itself."""

    @abstractmethod
    def fit(self, literals: Mapping[str, int]) -> Self:
        """Return the scheme fitted to ``literals``, which maps each literal to its count. The
        result does not depend on the order of the literals."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Display name: the spec of the scheme, plus anything that distinguishes it from other
        schemes with the same spec. Fitted state is not included."""


SCHEMES = Registry[Scheme]("numtok.encoding.schemes", "scheme", Scheme)


def needs_sample(scheme: Scheme) -> TypeGuard[FittedScheme]:
    """Return whether a scheme must still be fitted to numbers before it can be used."""
    return isinstance(scheme, FittedScheme) and scheme.needs_sample


def fitted(scheme: Scheme, literals: Mapping[str, int]) -> Scheme:
    """Return a scheme fitted to ``literals``, which maps each literal to its count. A scheme that
    cannot be fitted is returned unchanged."""
    return scheme.fit(literals) if isinstance(scheme, FittedScheme) else scheme


def title_of(scheme: Scheme) -> str:
    """Return a scheme's display name."""
    return scheme.title if isinstance(scheme, FittedScheme) else spec_of(scheme)


def is_exact(scheme: Scheme) -> bool:
    """Return whether a scheme has a float64 channel."""
    return isinstance(scheme, ChannelScheme) and scheme.exact


def splits_numbers(scheme: Scheme) -> TypeGuard[ChannelScheme]:
    """Return whether a scheme splits numbers between token and channel."""
    return isinstance(scheme, ChannelScheme) and scheme.splits


def scales_values(scheme: Scheme) -> TypeGuard[ChannelScheme]:
    """Return whether a scheme passes each number to the model as a single value that a normalizer
    scales."""
    return isinstance(scheme, ChannelScheme) and not (scheme.splits or scheme.exact)


def fitted_to_golden(scheme: Scheme) -> Scheme:
    """Return a scheme fitted to the literals in its golden rows, each counted once."""
    return fitted(scheme, {literal: 1 for literal, _, _ in scheme.golden})


def plain(kind: type[Scheme]) -> Scheme:
    """Return a scheme at its default settings. If the class has required settings, the spec in its
    attribute ``checked_at`` is used instead."""
    spec = getattr(kind, "checked_at", None)
    return kind() if spec is None else SCHEMES.build(spec)


def at_defaults(kind: type[Scheme]) -> Scheme:
    """Return a scheme of this class at its default settings, fitted to its golden rows. The golden
    rows and the digest of the class refer to this scheme."""
    return fitted_to_golden(plain(kind))


def digest_of(scheme: Scheme) -> str:
    """Return a digest (16 hexadecimal digits) of a scheme's output for a fixed sample of numbers:
    tokens, lengths and channel values."""
    scheme, rng = fitted_to_golden(scheme), random.Random(0)
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
    """Return the outcome of each number, uint8[n].

    Infinities and NaN are recognized by their values.

    over, under
        bool[n], True for numbers above and below the representable magnitudes.
    zero
        bool[n], True for zeros that have a special token.
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
        above, _ = numerals.out_of_float64()  # 1e400 is not an infinity
        outcomes[infinite & ~above] = Outcome.POSITIVE_INFINITY
    outcomes[(outcomes > 0) & np.signbit(numerals.values)] += 1  # the negative twin comes next
    outcomes[np.isnan(numerals.values)] = Outcome.NAN
    return outcomes


def names_of(outcomes: UInt8s) -> dict[str, int]:
    """Return the count of each outcome, keyed by its lower-case name. Ordinary numbers are left
    out.

    >>> names_of(np.array([0, 1, 1, 8], np.uint8))
    {'zero': 2, 'positive_overflow': 1}
    """
    if not outcomes.any():
        return {}
    counts = np.bincount(outcomes, minlength=len(Outcome))
    return {
        outcome.name.lower(): int(counts[outcome])
        for outcome in Outcome
        if outcome is not Outcome.NUMBER and counts[outcome]
    }
