"""fone: predicts each decimal digit of a number from two coordinates of the hidden state (FoNE)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.common_heads import ClassesHead, ClassesReader
from numtok.models.distributions.digits import BASES, IndependentDigits, digits_of, numbers_of
from numtok.models.heads.base import ValueReader
from numtok.numerals.literals import MOST_DIGITS, check_digits, units_of


@dataclass(frozen=True)
class FoneHead(ClassesHead):
    """FoNE's head (Zhou et al. 2025, Section 3): each digit is read from a pair of coordinates.

    In the layer-normalized state, the first pair belongs to the last decimal, the next pair to the
    digit before it, and so on. For each digit, the logit of the value j is the dot product of its
    pair and (cos 2 pi j / 10, sin 2 pi j / 10). The coordinate after the last pair is the logit of
    a minus sign; the paper's numbers have no sign.

    The loss is the mean cross-entropy over all digits and the sign. It has a lower bound, because
    layer norm limits the length of a pair to sqrt(width / digits) times its gain, and therefore the
    differences between logits (0.6 nats per digit remain in the paper's own runs). Here the gain
    starts at sqrt(digits), so that the limit is initially sqrt(width) for any number of digits.

    whole, decimals
        Number of digits before and after the point. For a number with more digits, the nearest
        number with this many digits is the target.
    bases
        ``10``: the pairs above. ``2+5``, the default of the class in the public code: four
        coordinates per digit, whose logits are dot products with cosine and sine of 2 pi j / 2 and
        2 pi j / 5.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "FoNE (arXiv 2502.09741), Section 3"
    checked_at: ClassVar[str] = "fone,whole=3,decimals=0"  # fits into narrow models
    whole: int = setting(10, "Digits before the point.", at_least=0, at_most=MOST_DIGITS)
    decimals: int = setting(5, "Digits after the point.", at_least=0, at_most=MOST_DIGITS)
    bases: str = setting("10", choices=tuple(BASES))

    def __post_init__(self) -> None:
        check_digits("fone", self.whole, self.decimals)

    def describe(self) -> str:
        return f"independent digits, {self.whole} before the point and {self.decimals} after it"

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.abs(values) < 10.0**self.whole - 0.5 * 10.0**-self.decimals

    @property
    def places(self) -> int:
        """Total number of digits, before and after the point."""
        return self.whole + self.decimals

    @property
    def sizes(self) -> Sequence[int]:
        return (2, *[10] * self.places)

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, 1 + K]: the classes of the sign and of K digits. Infinities are treated
        as the largest representable numbers."""
        return self.classes(np.nan_to_num(values))

    def classes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, 1 + K]: for each value, 1 for a minus sign and 0 otherwise, then its K
        digits, most significant first."""
        units = units_of(values, self.decimals)
        digits = digits_of(np.minimum(units, 10**self.places - 1), self.places)
        return np.concatenate([np.signbit(values)[:, None], digits], axis=1).astype(np.int64)

    def numbers(self, classes: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes: NDArray[np.float64] = numbers_of(classes[:, 1:]) / 10.0**self.decimals
        return np.where((classes[:, 0] > 0) & (sizes > 0), -sizes, sizes)

    def distribution(self, logs: Sequence[NDArray[np.float64]]) -> IndependentDigits:
        [signs, digits] = logs
        return IndependentDigits(digits, self.decimals, signs[:, 0])

    def build(self, width: int) -> ValueReader:
        places, read = self.places, 2 * len(BASES[self.bases]) * self.places
        if width <= read:
            raise UsageError(
                f"--head fone needs {read + 1} coordinates for {places} digits and a sign; "
                f"this model has {width}. Use fewer digits, such as fone,whole=3,decimals=0, or a "
                "wider --preset"
            )
        return _FoneReader(self, width)


class _FoneReader(ClassesReader):
    """Parameters are the logit of a minus sign, then those of the digits, highest digit first."""

    def __init__(self, head: FoneHead, width: int) -> None:
        super().__init__(head, None)
        self.places = head.places
        self.norm = nn.LayerNorm(width)
        nn.init.constant_(self.norm.weight, math.sqrt(self.places))
        turns = [2 * math.pi * torch.arange(10) / base for base in BASES[head.bases]]
        prototypes = [part for angles in turns for part in (angles.cos(), angles.sin())]
        self.register_buffer("prototypes", torch.stack(prototypes), False)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        read_ND: Tensor = self.norm(hidden_ND.float())
        prototypes = cast(Tensor, self.prototypes)
        read = self.places * len(prototypes)
        parts_NKC = read_ND[:, :read].reshape(-1, self.places, len(prototypes)).flip(1)
        logits_NKJ = parts_NKC @ prototypes
        minus_N1 = read_ND[:, read, None]
        return torch.cat([minus_N1, logits_NKJ.flatten(1)], dim=1)
