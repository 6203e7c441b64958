"""The digits behind each prefix token, as they stand in a row: before the point, and behind it."""

from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.models.vocabulary import Vocabulary

_OTHER, _POINT, _SIGN, _MINUS, _COMMA = -1, 10, 11, 12, 13  # kinds of tokens that are no digit
_KINDS = {str(digit): digit for digit in range(10)}
_KINDS |= {".": _POINT, "+": _SIGN, "-": _MINUS, "\u2212": _MINUS, ",": _COMMA}


class DecimalDigits(NamedTuple):
    """P numbers by their digits, the first of each part first; -1 where there are no more.

    whole, decimals
        int64[P, W], int64[P, V]: those before the point, and behind it.
    whole_count, decimal_count
        int64[P]: how many there are, those that were cut off counted in.
    negative
        bool[P].
    """

    whole: Tensor
    decimals: Tensor
    whole_count: Tensor
    decimal_count: Tensor
    negative: Tensor


class DecimalParts(nn.Module):
    """Tokens [B, L] and the places of P prefixes to the digits that follow each.

    A number goes on until a token that is none of its sign, digits, commas and point: text, another
    prefix, an ``e``, ``%``, a mask or a pad. So in ``<num> 1 . 5 e <num> - 3`` the first is 1.5 and
    the second -3.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        kinds = _kinds(vocabulary)
        self._is_digit = (kinds >= 0) & (kinds < _POINT)
        self.register_buffer("kinds", torch.from_numpy(kinds), persistent=False)

    def digits(self, tokens: NDArray[np.integer[Any]]) -> int:
        """How many of some tokens are digits of numbers."""
        return int(self._is_digit[tokens].sum())

    def forward(
        self, tokens_BL: Tensor, at_P: Tensor, columns: tuple[int, int] | None
    ) -> DecimalDigits:
        """``at``: flat indices into [B, L]. ``columns`` (W, V) of the parts; None: as many as the
        longest has, at least one. What has more digits is cut off behind them."""
        length = tokens_BL.shape[1]
        kind_BL = cast(Tensor, self.kinds)[tokens_BL]
        after_L = torch.arange(length, device=tokens_BL.device)
        row_P, place_P = at_P // length, at_P % length
        behind_PL = after_L > place_P[:, None]
        kind_PL = kind_BL[row_P]
        stopped_PL = (behind_PL & (kind_PL == _OTHER)).cumsum(1) > 0
        inside_PL = behind_PL & ~stopped_PL
        fraction_PL = (inside_PL & (kind_PL == _POINT)).cumsum(1) > 0
        digit_PL = inside_PL & (kind_PL >= 0) & (kind_PL < _POINT)
        width, more = columns or (None, None)
        whole_PL, decimal_PL = digit_PL & ~fraction_PL, digit_PL & fraction_PL
        return DecimalDigits(
            _packed(kind_PL, whole_PL, width),
            _packed(kind_PL, decimal_PL, more),
            whole_PL.sum(1),
            decimal_PL.sum(1),
            (inside_PL & (kind_PL == _MINUS)).any(1),
        )


def _kinds(vocabulary: Vocabulary) -> NDArray[np.int64]:
    kinds = np.full(vocabulary.size, _OTHER)
    for index, name in enumerate(vocabulary.names):
        kinds[vocabulary.first + index] = _KINDS.get(name, _OTHER)
    return kinds


def _packed(kind_PL: Tensor, are_PL: Tensor, width: int | None) -> Tensor:
    """[P, W]: the chosen of each row, moved to its beginning; -1 behind them."""
    if width is None:
        width = max(1, int(are_PL.sum(1).max())) if len(are_PL) else 1
    rank_PL = are_PL.cumsum(1) - 1
    place_PL = torch.where(are_PL & (rank_PL < width), rank_PL, width)
    packed = torch.full((len(kind_PL), width + 1), -1, device=kind_PL.device)
    return packed.scatter_(1, place_PL, kind_PL)[:, :width]
