"""fone: beside the vector of ``[NUM]``, an angle for each decimal place of the number."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from numtok.declaration import setting
from numtok.models.embedders.base import FeatureEmbedder, FeatureModule
from numtok.models.presets import TrainingDefaults
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.literals import MOST_DIGITS, check_digits, units_of


@dataclass(frozen=True)
class FoneEmbedder(FeatureEmbedder, TrainingDefaults):
    """Fourier Number Embedding (Zhou et al. 2025, Section 3): to the vector of ``[NUM]`` is added

        W (minus, cos 2 pi x / T - 1, sin 2 pi x / T for T = 10^(1 - decimals) ... 10^whole)

    with a learnt W. The angle of T = 10^(k+1) is 0.d_k d_(k-1)... of a turn, in the digits of |x|,
    by which it is worked out: x / T in float64 has lost the last of them. So 17.5 and 7.5 have the
    same angle at T = 10. The paper's numbers have no sign; here -17.5 differs from 17.5 in the
    first feature, 1 or 0, alone. Zero is a number like others.

    The paper has the cosines themselves, which is the same but for the vector of ``[NUM]``. Less 1,
    places that no number of the data uses add nothing and are not learnt. As a constant 1 each of
    them moves what all numbers have in common by one more step of the optimizer, and ten of them
    left little else to learn (docs/LOG.md, 2026-11-26).

    whole, decimals
        Digits before and behind the point. What is finer is rounded away, and of a larger number
        the highest digits are not seen: encode with the scheme ``fone``, which tells both.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "FoNE (arXiv 2502.09741), Section 3"
    # The public code has a warm-up of a fifth and 5e-5, its logged run of width 256 5e-4. At width
    # 128 that left half of the seeds without the last digit, and 2e-4 none (docs/LOG.md).
    learning_rate: ClassVar[float] = 2e-4
    whole: int = setting(10, "Digits before the point.", at_least=0, at_most=MOST_DIGITS)
    decimals: int = setting(5, "Digits behind the point.", at_least=0, at_most=MOST_DIGITS)

    def __post_init__(self) -> None:
        check_digits("fone", self.whole, self.decimals)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        turns = turns_of(values, self.whole, self.decimals) * (2 * np.pi)
        pairs = np.stack([np.cos(turns) - 1, np.sin(turns)], axis=2)
        flat = pairs.reshape(len(turns), 2 * turns.shape[1])
        return np.concatenate([np.signbit(values)[:, None], flat], axis=1).astype(np.float32)

    def rescale(self, module: nn.Module, times: float) -> None:
        """Change nothing: weights do not depend on ``INIT``."""

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        module = FeatureModule(self, vocabulary, width)
        # As the paper's square map of features that are filled up with zeros.
        nn.init.uniform_(module.linear.weight, -(width**-0.5), width**-0.5)
        return module


def turns_of(values: NDArray[np.float64], whole: int, decimals: int) -> NDArray[np.float64]:
    """float64[n, K], of a turn: the angle of |x| at each period, the shortest first, by its digits.

    >>> turns_of(np.array([17.5]), 2, 1).tolist()  # T = 1, 10, 100
    [[0.5, 0.75, 0.175]]
    """
    powers = 10 ** np.arange(1, 1 + whole + decimals)
    known = np.nan_to_num(values)  # a model may say beside a number what is none
    return units_of(known, decimals)[:, None] % powers / powers
