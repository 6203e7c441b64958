"""Base class for digit positions, which give a model the position of each token within its number.

A :class:`DigitPlaces` is a frozen dataclass of settings. It assigns an index to each token of a
model's input. A learned vector for each index is added to the embedding; index 0 adds nothing. The
index of a token depends only on that token and the tokens before it, so it is the same for complete
rows and for cached decoding.

Shapes: B rows, L tokens, D width.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.models.embedders.base import token_table
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, name_of


class DigitPlaces(ABC):
    """Base class for digit positions, which assign an index to each token within a number.

    Subclasses are final frozen dataclasses; their fields are settings.

    offsets
        Number of random offsets in training. An offset of 0 to ``offsets - 1`` is drawn and added
        to all indices from :meth:`numbered` that are not 0.
    offset_per_row
        True if an offset is drawn for each row, False if for each batch.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def offsets(self) -> int: ...

    @property
    @abstractmethod
    def offset_per_row(self) -> bool: ...

    @property
    @abstractmethod
    def most(self) -> int:
        """Largest index that has its own vector; larger indices use the same vector."""

    @abstractmethod
    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the index of each token in its number, int64[B, L]; 0 for tokens without an index.

        ``digits`` bool[B, L] is True for tokens that are digits of numbers.
        """


class PlaceTable(nn.Module):
    """Module with a learned vector for each index of a :class:`DigitPlaces` other than 0.

    Raises UsageError if the vocabulary has no digit tokens.
    """

    def __init__(self, places: DigitPlaces, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        are_digits = ~np.isnan(vocabulary.digits)
        if not are_digits.any():
            raise UsageError(
                f"--digit-positions {name_of(places)} needs numbers written digit by digit; this "
                "data has none. Encode with --scheme digits,reverse=yes, or omit --digit-positions"
            )
        self.places = places
        self._are_digits = np.zeros(vocabulary.size, np.bool_)
        self._are_digits[vocabulary.first : vocabulary.first_of_text] = are_digits
        self.table = token_table(places.most, width)

    def numbers(
        self,
        tokens: NDArray[np.int64],
        before: NDArray[np.int64] | None = None,
        shares: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """Return int64[B, L]: the indices of tokens [B, L] that follow the tokens ``before`` [B,
        T].

        shares
            float64[B, 2] in [0, 1): the random offset as a fraction of ``offsets``, drawn per batch
            (first column) and per row (second column). If it is None, no offset is added.
        """
        length = tokens.shape[1]
        if before is not None:
            tokens = np.concatenate([before, tokens], axis=1)
        numbered = self.places.numbered(tokens, self._are_digits[tokens])
        offset = np.zeros((len(tokens), 1), np.int64)
        if shares is not None:
            drawn = shares[:, int(self.places.offset_per_row), None]
            offset = (drawn * self.places.offsets).astype(np.int64)
        moved = np.where(numbered > 0, np.minimum(numbered + offset, self.places.most), 0)
        return moved[:, tokens.shape[1] - length :]

    def forward(self, numbers_BL: Tensor) -> Tensor:
        """Return [B, L, D]: the vector of each index; zeros for index 0."""
        vectors_BLD = self.table((numbers_BL - 1).clamp(min=0))
        return cast(Tensor, vectors_BLD * (numbers_BL > 0)[:, :, None])


def runs(digits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[B, L]: the index of each digit in its run of digits, starting at 1; 0 for other
    tokens.

    >>> runs(np.array([[True, True, False, True]])).tolist()
    [[1, 2, 0, 1]]
    """
    index = np.arange(1, digits.shape[1] + 1)
    last_other = np.maximum.accumulate(np.where(digits, 0, index), axis=1)
    return np.where(digits, index - last_other, 0)


PLACES = Registry[DigitPlaces]("numtok.models.places", "places", DigitPlaces)
