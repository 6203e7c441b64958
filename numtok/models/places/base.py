"""The contract of a place part: where a token stands within its number, beside its position.

A place part is a frozen dataclass of settings. It numbers the tokens of a row as the model sees
them, and a learnt vector for each number is added to what the embedder gives: 0 adds nothing. The
number of a token depends on it and on those before it alone, so it is the same whether a row is
read at once or token by token behind a cache.

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
    """How tokens are numbered. Subclasses are final frozen dataclasses; their fields are settings.

    offsets
        How many numbers beyond those of :meth:`numbered` training meets: to those that are not 0
        it adds one number of 0 to ``offsets - 1``.
    offset_per_row
        True if training draws that number for each row, False for each batch.
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
        """The largest number that has a vector; beyond it that is the one."""

    @abstractmethod
    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        """int64[B, L]: the number of each of some tokens [B, L], 0 for none; ``digits``, bool[B,
        L]: which of them are digits of a number."""


class PlaceTable(nn.Module):
    """A vector for each number of a :class:`DigitPlaces`, and the tokens that are digits.

    Raises UsageError for a vocabulary without any.
    """

    def __init__(self, places: DigitPlaces, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        are_digits = ~np.isnan(vocabulary.digits)
        if not are_digits.any():
            raise UsageError(
                f"--digit-positions {name_of(places)} is of digits, one behind the other, and "
                "these data "
                "have none; encode with --scheme digits,reverse=yes, or leave --digit-positions out"
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
        """int64[B, L]: of tokens [B, L] behind those ``before`` [B, T].

        shares
            float64[B, 2], in [0, 1): the fraction of ``offsets`` that is added, drawn for the batch
            and drawn for each row; None adds nothing.
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
        """[B, L, D]: the vector of each number; zeros for 0."""
        vectors_BLD = self.table((numbers_BL - 1).clamp(min=0))
        return cast(Tensor, vectors_BLD * (numbers_BL > 0)[:, :, None])


def runs(digits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[B, L]: how many digits have come one after the other, up to and with each.

    >>> runs(np.array([[True, True, False, True]])).tolist()
    [[1, 2, 0, 1]]
    """
    place = np.arange(1, digits.shape[1] + 1)
    last_other = np.maximum.accumulate(np.where(digits, 0, place), axis=1)
    return np.where(digits, place - last_other, 0)


PLACES = Registry[DigitPlaces]("numtok.models.places", "places", DigitPlaces)
