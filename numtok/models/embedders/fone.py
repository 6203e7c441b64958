"""fone: embeds a number by one angle per decimal digit, added to the vector of ``[NUM]`` (FoNE)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from numtok.declaration import setting
from numtok.models.distributions.digits import BASES
from numtok.models.embedders.base import FeatureEmbedder, FeatureModule
from numtok.models.presets import TrainingDefaults
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.literals import MOST_DIGITS, check_digits, units_of


@dataclass(frozen=True)
class FoneEmbedder(FeatureEmbedder, TrainingDefaults):
    """Fourier Number Embedding (Zhou et al. 2025, Section 3): one angle per digit of the number.

    The following is added to the vector of ``[NUM]``:

        W (minus, cos 2 pi x / T - 1, sin 2 pi x / T for T = 10^(1 - decimals) ... 10^whole)

    where W is learned. The angle at T = 10^(k+1) is 0.d_k d_(k-1)... of a turn and is computed from
    the digits of |x|, because x / T in float64 loses the last digits. 17.5 and 7.5 therefore have
    the same angle at T = 10. The paper's numbers have no sign; here -17.5 differs from 17.5 only in
    the first feature (1 or 0). Zero needs no special case.

    The published embedder is ``fone,shifted=no``, or, with the default of its class,
    ``fone,shifted=no,bases=2+5``; its own treatment of zero as padding is not followed.

    whole, decimals
        Number of digits before and after the point. Further decimals are rounded away, and further
        digits before the point are ignored. Both are reported if the data are encoded with the
        scheme ``fone``.
    shifted
        Subtract 1 from the cosines. The paper does not, which is equivalent up to the vector of
        ``[NUM]``. With the subtraction, digits that are 0 in all numbers of the data add nothing
        and are not trained. Without it, their features are constants of 1, and every optimizer step
        shifts the part of the vector that all numbers share. Ten such digits slow training down
        (docs/log, 2026-11-26).
    bases
        ``10``: the periods above. ``2+5``: T = 2 * 10^k and 5 * 10^k for k = -decimals ... whole.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "FoNE (arXiv 2502.09741), Section 3"
    # The public code uses 20% warm-up and 5e-5, its logged run of width 256 uses 5e-4. At width 128
    # that rate left half of the seeds without the last digit; with 2e-4 all learned it
    # (docs/log).
    learning_rate: ClassVar[float] = 2e-4
    whole: int = setting(10, "Digits before the point.", at_least=0, at_most=MOST_DIGITS)
    decimals: int = setting(5, "Digits after the point.", at_least=0, at_most=MOST_DIGITS)
    shifted: bool = True
    bases: str = setting("10", choices=tuple(BASES))

    def __post_init__(self) -> None:
        check_digits("fone", self.whole, self.decimals)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        turns = turns_of(values, self.whole, self.decimals, self.bases) * (2 * np.pi)
        pairs = np.stack([np.cos(turns) - self.shifted, np.sin(turns)], axis=2)
        flat = pairs.reshape(len(turns), 2 * turns.shape[1])
        return np.concatenate([np.signbit(values)[:, None], flat], axis=1).astype(np.float32)

    def rescale(self, module: nn.Module, times: float) -> None:
        """Do nothing, because the weights do not depend on ``INIT``."""

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        module = FeatureModule(self, vocabulary, width)
        # Like the paper's square matrix, applied to zero-padded features.
        nn.init.uniform_(module.linear.weight, -(width**-0.5), width**-0.5)
        return module


def turns_of(
    values: NDArray[np.float64], whole: int, decimals: int, bases: str = "10"
) -> NDArray[np.float64]:
    """Return float64[n, K]: the angle of |x| at each period, in turns, computed from its digits.
    The shortest period comes first.

    >>> turns_of(np.array([17.5]), 2, 1).tolist()  # T = 1, 10, 100
    [[0.5, 0.75, 0.175]]
    >>> turns_of(np.array([17.5]), 1, 0, "2+5").tolist()  # T = 2, 5, 20, 50, of 18
    [[0.0, 0.6, 0.9, 0.36]]
    """
    powers = 10 ** np.arange(whole + decimals + (bases != "10"))
    periods = (powers[:, None] * np.array(BASES[bases])).ravel()
    finite = np.nan_to_num(values)  # a model may predict a value that is not a number
    # Larger numbers would exceed the 15 digits that units_of keeps.
    finite = np.fmod(finite, 10.0 ** (whole + (bases != "10")))
    turns: NDArray[np.float64] = units_of(finite, decimals)[:, None] % periods / periods
    return turns
