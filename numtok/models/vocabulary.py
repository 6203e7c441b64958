"""The token ids of a model, and which of them are numbers with a value beside them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.codec import Codec


@dataclass(frozen=True, eq=False, kw_only=True)
class Vocabulary:
    """What embedders and heads know of the tokens.

    size
        How many there are.
    first
        The id of the first token of the scheme.
    factors
        float64: what the value beside each of the scheme's tokens is multiplied by
        (``Scheme.factors``); NaN where a token is no such number.
    names
        The tokens of the scheme, by their ids less ``first``.
    digits
        float64: the value of each of the scheme's tokens that is a digit, or several, of a run
        (``Scheme.digit_values``); NaN of others.
    """

    size: int
    first: int = 0
    factors: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] = ()
    digits: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, codec: Codec) -> "Vocabulary":
        """That of encoded data.

        >>> vocabulary = Vocabulary.of(codec)  # of numgpt, which has 23 exponents
        >>> len(vocabulary.numbers), vocabulary.splits
        (23, True)
        """
        names, scheme = codec.number_tokens, codec.scheme
        factors, digits = (of[: len(names)] for of in (scheme.factors, scheme.digit_values))
        return cls(
            size=codec.vocabulary_size,
            first=codec.number_first,
            factors=factors,
            names=names,
            digits=digits,
        )

    @property
    def numbers(self) -> NDArray[np.int64]:
        """int64[k]: the ids of the tokens that are numbers with a value beside them."""
        return self.first + np.flatnonzero(~np.isnan(self.factors))

    @property
    def first_of_text(self) -> int:
        """The id of the first token of text: they come last."""
        return self.first + len(self.names)

    @property
    def multipliers(self) -> NDArray[np.float64]:
        """float64[size]: the factor of each id, 1 for those that are no such number."""
        every = np.ones(self.size)
        every[self.numbers] = self.factors[~np.isnan(self.factors)]
        return every

    @property
    def splits(self) -> bool:
        """Whether token and value are two parts of a number: the value alone is not the number."""
        return len(np.unique(self.multipliers[self.numbers])) > 1
