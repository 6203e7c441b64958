"""numvalue: computes the vector of ``<num>`` from the number after it (Value-Aware)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.encoding.schemes.base import Channel
from numtok.encoding.schemes.numvalue import DECIMALS, DIGITS, PREFIX
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder, NumberModule
from numtok.models.objectives.base import Objective, OwnLosses
from numtok.models.precision import widest
from numtok.models.trunks.base import TokenTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of

Column = TypeVar("Column")  # an array, or a tensor on the device
_OTHER, _POINT, _SIGN, _MINUS, _COMMA = -1, 10, 11, 12, 13  # kinds of non-digit tokens
_KINDS = {str(digit): digit for digit in range(10)}
_KINDS |= {".": _POINT, "+": _SIGN, "-": _MINUS, "\u2212": _MINUS, ",": _COMMA}
_ENCODERS = ("rnn", "mlp", "scalar", "binary")
_BITS_WHOLE, _BITS_FRACTION = 60, 64  # 2^60 is above 10^18
_EXACT = 18  # decimals of a fraction in binary: int64 holds twice 10^18
_LARGEST = 1e38  # largest scalar in float32
_POWERS = {torch.float64: 300, torch.float32: 37}  # powers of ten, well within the float's range


@dataclass(frozen=True)
class NumValueEmbedder(Embedder):
    """Replaces the vector of ``<num>`` with a function f(x) of the number x after it (Value-Aware,
    Section 3.2 and Figure 3).

    encoder
        Kind of function. ``rnn``, which the paper recommends: one GRU reads the digits before the
        point and another the digits after it, from left to right and without a limit on their
        number; a linear map combines the final states of the GRUs. ``mlp``: 18 digits before the
        point and 22 after it, each part padded on the right, pass through a linear map and tanh.
        ``scalar`` and ``binary``, which the paper mentions without details: x itself, or its binary
        digits (60 before the point and 64 after it), pass through a linear map and tanh.
    auxiliary
        Include the sign and the digit counts before and after the point.
    tanh
        Apply tanh to the result of ``rnn`` as well. Table 5 of the paper names tanh for the module;
        Section 3.2 describes ``rnn`` with a linear map only. All other encoders end with tanh.

    The paper leaves some details open. Here ``mlp`` reads a digit d as (d + 1) / 10 and padding as
    0, and ``rnn`` reads digits as one-hot vectors. Digit counts are given as fractions of 18 and
    22. Each GRU has half the width of the model. Only ``rnn`` and the digit counts depend on digits
    beyond 18 and 22.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Value-Aware, Section 3.2"
    positional: ClassVar[str] = "encoder"
    encoder: str = setting("rnn", choices=_ENCODERS)
    auxiliary: bool = True
    tanh: bool = False

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Return a message if the objective generates numbers but trains no replacement for the
        embedding f(x) of ``<num>``; None otherwise."""
        writes = objective.causal and objective.requires() != "label"
        if isinstance(objective, OwnLosses) or not writes:
            return None
        return (
            f"--embedder numvalue reads each number at its {PREFIX}, before it is generated, and "
            f"--objective {spec_of(objective)} trains no replacement for that vector. Use "
            "--objective numvalue"
        )

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        kinds = {"rnn": _Recurrent, "mlp": _Fixed, "scalar": _Scalar, "binary": _Binary}
        features = kinds[self.encoder](width)
        encoder = _Encoder(features, self, width)
        return _Prefixed(vocabulary, width, encoder)


class DecimalDigits(NamedTuple, Generic[Column]):
    """Digits of P numbers, split at the decimal point. Each part starts with its first digit and is
    padded with -1.

    whole, decimals
        int64[P, W] and int64[P, V]: the digits before and after the point.
    whole_count, decimal_count
        int64[P]: the number of digits before and after the point, including truncated ones.
    negative
        bool[P]: True for a minus sign.
    """

    whole: Column
    decimals: Column
    whole_count: Column
    decimal_count: Column
    negative: Column


class DecimalParts:
    """Callable that takes tokens [B, L] and extracts the digits of the number after each of the P
    prefixes (``<num>`` tokens).

    Any token except a sign, a digit, a comma or a point ends a number: text, another prefix, an
    ``e``, ``%``, a mask or padding. In ``<num> 1 . 5 e <num> - 3``, for example, the first number
    is 1.5 and the second is -3.

    It runs on the host because array shapes depend on the number of prefixes and on the longest
    number. Tokens are already in host memory, so no device synchronization is needed.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._kinds = np.full(vocabulary.size, _OTHER)
        kinds = [_KINDS.get(name, _OTHER) for name in vocabulary.names]
        self._kinds[vocabulary.first : vocabulary.first_of_text] = kinds

    def __call__(
        self, tokens_BL: NDArray[np.int64], at_P: NDArray[np.int64], columns: tuple[int, int] | None
    ) -> DecimalDigits[NDArray[Any]]:
        """Return the digits after the prefixes at flat indices ``at_P`` into [B, L].

        ``columns`` is (W, V), the maximum number of digits before and after the point; further
        digits are truncated. If it is None, all digits are kept.
        """
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


def _packed(
    kind_PL: NDArray[np.int64], are_PL: NDArray[np.bool_], width: int | None
) -> NDArray[np.int64]:
    """[P, W]: the selected items of each row, packed to the left and padded with -1."""
    if width is None:
        width = max(1, int(are_PL.sum(axis=1).max(initial=0)))
    row, column = np.nonzero(are_PL)
    rank = (are_PL.cumsum(axis=1) - 1)[row, column]
    packed = np.full((len(kind_PL), width), -1)
    kept = rank < width
    packed[row[kept], rank[kept]] = kind_PL[row, column][kept]
    return packed


class _Prefixed(NumberModule):
    """Token vectors in which each number's prefix has the vector f(x) of the number after it.

    The row of ``table`` for the prefix is not used as input, but by a token head with tied weights.
    The digits are read from the tokens after the prefix. Masked digits and digits that are not
    generated yet are not part of the number; f does not fill them in.

    ``encoder`` computes f.

    Raises UsageError if the vocabulary has no prefix.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, encoder: "_Encoder") -> None:
        if PREFIX not in vocabulary.names:
            raise UsageError(
                f"--embedder numvalue replaces {PREFIX} by a vector of the number after it; this "
                f"data has no {PREFIX}. Use --embedder lookup, or encode with --scheme numvalue"
            )
        prefix = np.array([vocabulary.first + vocabulary.names.index(PREFIX)])
        super().__init__(vocabulary, width, prefix, ahead=True, sees_all=encoder.sees_all)
        self.parts, self.encoder = DecimalParts(vocabulary), encoder

    def inputs(
        self, tokens_BL: NDArray[np.int64], values_BL: Channel, at_P: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        """Return the digits after each prefix, as many as the encoder reads."""
        return self.parts(tokens_BL, at_P, None if self.sees_all else (DIGITS, DECIMALS))

    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        return cast(Tensor, self.encoder(DecimalDigits(*inputs)))


class _Encoder(nn.Module):
    """Computes f: features of the digits [P, F] plus auxiliary ones, mapped to [P, D]."""

    def __init__(self, features: "_Features", settings: NumValueEmbedder, width: int) -> None:
        super().__init__()
        self.features = features
        self.sees_all, self.auxiliary = settings.encoder == "rnn", settings.auxiliary
        self.tanh = settings.tanh or not self.sees_all
        self.out = nn.Linear(features.size + 3 * self.auxiliary, width)

    def forward(self, digits: DecimalDigits[Tensor]) -> Tensor:
        features_PF = self.features(digits)
        if self.auxiliary:
            features_PF = torch.cat([features_PF, _auxiliary(digits)], dim=1)
        made_PD = self.out(features_PF)
        return cast(Tensor, made_PD.tanh() if self.tanh else made_PD)


def _auxiliary(digits: DecimalDigits[Tensor]) -> Tensor:
    """[P, 3]: sign, and digit counts before and after the point as fractions of 18 and 22."""
    counts = digits.whole_count.float() / DIGITS, digits.decimal_count.float() / DECIMALS
    return torch.stack([_sign(digits), *counts], dim=1)


def _sign(digits: DecimalDigits[Tensor]) -> Tensor:
    return 1 - 2 * digits.negative.float()


class _Features(nn.Module):
    """Maps digits to [P, size]."""

    size: int

    def __init__(self, width: int) -> None:
        super().__init__()


class _Fixed(_Features):
    """(d + 1) / 10 for each digit, 0 for padding."""

    size = DIGITS + DECIMALS

    def forward(self, digits: DecimalDigits[Tensor]) -> Tensor:
        return (torch.cat([digits.whole, digits.decimals], dim=1) + 1).float() / 10


class _Recurrent(_Features):
    """The last states of two GRUs; 0 for a part without digits."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.whole = nn.GRU(10, width // 2, batch_first=True)
        self.decimals = nn.GRU(10, width // 2, batch_first=True)
        self.size = 2 * (width // 2)

    def forward(self, digits: DecimalDigits[Tensor]) -> Tensor:
        whole_PH = _last_state(self.whole, digits.whole, digits.whole_count)
        decimals_PH = _last_state(self.decimals, digits.decimals, digits.decimal_count)
        return torch.cat([whole_PH, decimals_PH], dim=1)


def _last_state(gru: nn.GRU, digits_PW: Tensor, count_P: Tensor) -> Tensor:
    """[P, H]: the state after the last digit of each row."""
    some_PW = digits_PW if len(digits_PW) else digits_PW.new_full((1, digits_PW.shape[1]), -1)
    one_hot = F.one_hot(some_PW + 1, 11)[:, :, 1:].float()  # zeros for padding
    states_PWH, _ = gru(one_hot)  # a GRU rejects empty batches
    states_PWH = states_PWH[: len(digits_PW)]
    last_P = (count_P - 1).clamp(min=0)
    last_PH = states_PWH[torch.arange(len(last_P), device=last_P.device), last_P]
    return cast(Tensor, last_PH * (count_P > 0)[:, None])


class _Scalar(_Features):
    """The value x."""

    size = 1

    def forward(self, digits: DecimalDigits[Tensor]) -> Tensor:
        whole, decimals = digits.whole.clamp(min=0), digits.decimals.clamp(min=0)
        wide = widest(whole.device)
        power_PW = digits.whole_count[:, None] - 1 - torch.arange(DIGITS, device=whole.device)
        # Powers beyond the float's range would be infinite, and times a digit 0 NaN.
        power_PW = power_PW.clamp(max=_POWERS[wide]).to(wide)
        tens_PW = torch.where(digits.whole < 0, 0.0, 10.0**power_PW)
        tenths_V = 10.0 ** -(1.0 + torch.arange(DECIMALS, device=whole.device).to(wide))
        size_P = (whole * tens_PW).sum(1) + (decimals * tenths_V).sum(1)
        return (_sign(digits) * size_P.clamp(max=_LARGEST).float())[:, None]


class _Binary(_Features):
    """The bits of |x|, most significant first, from 18 decimals; all ones before the point if x has
    more than 18 digits there."""

    size = _BITS_WHOLE + _BITS_FRACTION

    def forward(self, digits: DecimalDigits[Tensor]) -> Tensor:
        device = digits.whole.device
        whole_P = digits.whole.new_zeros(len(digits.whole))
        for digit_P in digits.whole.unbind(1):
            whole_P = torch.where(digit_P < 0, whole_P, 10 * whole_P + digit_P)
        places_W = torch.arange(_BITS_WHOLE - 1, -1, -1, device=device)
        whole_PW = (whole_P[:, None] >> places_W) & 1
        whole_PW = torch.where(digits.whole_count[:, None] > DIGITS, 1, whole_PW)
        left_P = digits.decimals.new_zeros(len(digits.decimals))
        for digit_P in digits.decimals[:, :_EXACT].clamp(min=0).unbind(1):
            left_P = 10 * left_P + digit_P
        bits = []
        for _ in range(_BITS_FRACTION):
            left_P = 2 * left_P
            bits.append(left_P >= 10**_EXACT)
            left_P = left_P - bits[-1] * 10**_EXACT
        return torch.cat([whole_PW.float(), torch.stack(bits, dim=1).float()], dim=1)
