"""The digits behind each prefix token, as they stand in a row: before the point, and behind it."""

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from numtok.models.vocabulary import Vocabulary

Column = TypeVar("Column")  # an array, or a tensor on the device

_OTHER, _POINT, _SIGN, _MINUS, _COMMA = -1, 10, 11, 12, 13  # kinds of tokens that are no digit
_KINDS = {str(digit): digit for digit in range(10)}
_KINDS |= {".": _POINT, "+": _SIGN, "-": _MINUS, "\u2212": _MINUS, ",": _COMMA}


class DecimalDigits(NamedTuple, Generic[Column]):
    """P numbers by their digits, the first of each part first; -1 where there are no more.

    whole, decimals
        int64[P, W], int64[P, V]: those before the point, and behind it.
    whole_count, decimal_count
        int64[P]: how many there are, those that were cut off counted in.
    negative
        bool[P].
    """

    whole: Column
    decimals: Column
    whole_count: Column
    decimal_count: Column
    negative: Column


class DecimalParts:
    """Tokens [B, L] and the places of P prefixes to the digits that follow each.

    A number goes on until a token that is none of its sign, digits, commas and point: text, another
    prefix, an ``e``, ``%``, a mask or a pad. So in ``<num> 1 . 5 e <num> - 3`` the first is 1.5 and
    the second -3.

    It is worked out on the host, which knows the tokens: how many prefixes there are and how many
    digits the longest number has are shapes, which a device would have to be asked for.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._kinds = _kinds(vocabulary)

    def __call__(
        self,
        tokens_BL: NDArray[np.int64],
        at_P: NDArray[np.int64],
        columns: tuple[int, int] | None,
    ) -> DecimalDigits[NDArray[Any]]:
        """``at``: flat indices into [B, L]. ``columns`` (W, V) of the parts; None: as many as the
        longest has, at least one. What has more digits is cut off behind them."""
        length = tokens_BL.shape[1]
        row_P, place_P = np.divmod(at_P, max(1, length))
        behind_PL = np.arange(length) > place_P[:, None]
        kind_PL = self._kinds[tokens_BL[row_P]]
        stopped_PL = np.logical_or.accumulate(behind_PL & (kind_PL == _OTHER), axis=1)
        inside_PL = behind_PL & ~stopped_PL
        fraction_PL = np.logical_or.accumulate(inside_PL & (kind_PL == _POINT), axis=1)
        digit_PL = inside_PL & (kind_PL >= 0) & (kind_PL < _POINT)
        width, more = columns or (None, None)
        whole_PL, decimal_PL = digit_PL & ~fraction_PL, digit_PL & fraction_PL
        return DecimalDigits(
            _packed(kind_PL, whole_PL, width),
            _packed(kind_PL, decimal_PL, more),
            whole_PL.sum(axis=1),
            decimal_PL.sum(axis=1),
            (inside_PL & (kind_PL == _MINUS)).any(axis=1),
        )


def _kinds(vocabulary: Vocabulary) -> NDArray[np.int64]:
    kinds = np.full(vocabulary.size, _OTHER)
    for index, name in enumerate(vocabulary.names):
        kinds[vocabulary.first + index] = _KINDS.get(name, _OTHER)
    return kinds


def _packed(
    kind_PL: NDArray[np.int64], are_PL: NDArray[np.bool_], width: int | None
) -> NDArray[np.int64]:
    """[P, W]: the chosen of each row, moved to its beginning; -1 behind them."""
    if width is None:
        width = max(1, int(are_PL.sum(axis=1).max(initial=0)))
    row, column = np.nonzero(are_PL)
    rank = (are_PL.cumsum(axis=1) - 1)[row, column]
    packed = np.full((len(kind_PL), width), -1)
    kept = rank < width
    packed[row[kept], rank[kept]] = kind_PL[row, column][kept]
    return packed
