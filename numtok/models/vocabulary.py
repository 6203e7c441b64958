"""A model's vocabulary: its token ids, and which of them stand for numbers with a value."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.grid import GridScheme
from numtok.encoding.schemes.base import ChannelScheme, Scheme
from numtok.encoding.valued_tokens import ValuedTokens
from numtok.encoding.whole_text import in_text


@dataclass(frozen=True, eq=False, kw_only=True)
class Vocabulary:
    """Description of a model's tokens for its embedder and heads.

    size
        Number of tokens.
    first
        Id of the scheme's first token.
    factors
        float64[k]: for each of the scheme's tokens, the factor that multiplies its value
        (``ChannelScheme.factors``); NaN if the token has no value.
    names
        The scheme's tokens, ordered by id, starting with ``first``.
    digits
        float64[k]: the value of each of the scheme's tokens that stands for one or more digits
        (:func:`digit_values`); NaN for other tokens.
    text_bytes
        The bytes of each text token if numbers are written with text tokens, otherwise empty.
    """

    size: int
    first: int = 0
    factors: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] = ()
    digits: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    text_bytes: Sequence[bytes] = field(default=(), repr=False)

    @classmethod
    def of(cls, codec: Codec) -> "Vocabulary":
        """Return the vocabulary of a codec.

        >>> vocabulary = Vocabulary.of(codec)  # numgpt has 23 exponents
        >>> len(vocabulary.numbers), vocabulary.splits
        (23, True)
        """
        names, scheme = codec.number_tokens, codec.scheme
        factors = np.full(len(names), np.nan)
        if isinstance(scheme, ChannelScheme):
            factors = scheme.factors[: len(names)]
        return cls(
            size=codec.vocabulary_size,
            first=codec.number_first,
            factors=factors,
            names=names,
            digits=digit_values(scheme)[: len(names)],
            text_bytes=codec.text.token_bytes if in_text(scheme) else (),
        )

    @cached_property
    def valued(self) -> ValuedTokens:
        """Tokens that stand for one or more digits: the scheme's own tokens, or text tokens if
        numbers are written with text tokens."""
        if self.text_bytes:
            texts = [token.decode(errors="replace") for token in self.text_bytes]
            return ValuedTokens.of_texts(texts, self.first_of_text)
        return ValuedTokens.of_names(self.names, self.digits, self.first)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Ids of the tokens that stand for a number with a value, int64[k]."""
        return self.first + np.flatnonzero(~np.isnan(self.factors))

    @property
    def first_of_text(self) -> int:
        """Id of the first text token; text tokens have the highest ids."""
        return self.first + len(self.names)

    @property
    def multipliers(self) -> NDArray[np.float64]:
        """float64[size]: the factor that multiplies the value of each token; 1 for tokens without a
        value."""
        every = np.ones(self.size)
        every[self.numbers] = self.factors[~np.isnan(self.factors)]
        return every

    @property
    def splits(self) -> bool:
        """True if each number is split between its token and its value, so that the value is only a
        part of the number."""
        return len(np.unique(self.multipliers[self.numbers])) > 1


def digit_values(scheme: Scheme) -> NDArray[np.float64]:
    """Return float64[vocabulary]: the value of each of a scheme's tokens that stands for one or
    more digits.

    The value is NaN for all other tokens, and for every token of a scheme that does not write
    numbers digit by digit.

    >>> digit_values(SCHEMES.build("digits"))[8:12]
    array([ 8.,  9., nan, nan])
    """
    names = scheme.vocabulary()
    if not scheme.defaults.digits:
        return np.full(len(names), np.nan)
    letters = digits + ascii_uppercase if isinstance(scheme, GridScheme) else ""
    return np.array([_digit_value(name, letters) for name in names])


def _digit_value(name: str, letters: str) -> float:
    if name.isascii() and name.isdigit():
        return int(name)
    return letters.index(name) if name in letters and name else np.nan
