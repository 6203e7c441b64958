"""numgpt: text or numeral, which exponent, which mantissa (Jin et al. 2023)."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.encoding.normalizers.base import Scaling
from numtok.errors import UsageError
from numtok.models.common_heads import PointReader, RealHead
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import (
    CalibratedReader,
    Calibration,
    TokenHead,
    ValueReader,
    projection,
)
from numtok.models.vocabulary import Vocabulary

_PER = ("token", "number")
_DEVIATION = math.sqrt(0.5)  # of exp(-(f - h W_f)^2) / sqrt(pi)
_LOG_ROOT_PI = math.log(math.pi) / 2


@dataclass(frozen=True)
class NumGPTHead(RealHead, TokenHead):
    """A selector W_z, a head of texts W, one of exponents W_e and one of mantissas W_f, all without
    bias (Equations 7 to 11). Exponent and mantissa are said independently of each other.

    The loss is that of Equation 12. Cross-entropy over the joint vocabulary is its first three
    terms, and of a mantissa f it is (f - h W_f)^2 + log sqrt(pi), -log of a Gaussian of variance
    1/2; their sum is -log p of all that is learnt.

    per
        ``token``: the whole sum is divided by how many tokens are learnt, so the loss is the mean
        of -log p. ``number``: the losses of mantissas are divided by how many numbers are learnt,
        so mantissas count as much in texts of few numbers. That is no likelihood any more. (The
        authors' code divides each of the four by all positions.)
    measured
        Whether the deviation of the predictive distribution is the error on the validation split
        (as of ``scalar``); else it is that of Equation 11, the root of 1/2.

    A number with exponent e is said with the density p(e) p(f) 10^-e
    (``distributions.multiples``).
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "NumGPT, Equations 7-12"
    normalizer: ClassVar[str] = "none"
    has_density: ClassVar[bool] = True
    per: str = setting("token", choices=_PER)
    measured: bool = False

    @property
    def per_token(self) -> bool:
        return self.per == "token"

    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        if not vocabulary.splits:
            raise UsageError(
                "--head numgpt says the exponent by a token and the mantissa beside it, which only "
                "data encoded with such a scheme have; encode with --scheme numgpt, or give "
                "another --head"
            )
        return _Selector(words, vocabulary, width)

    def build(self, width: int) -> ValueReader:
        return _MeasuredMantissa(width) if self.measured else _Mantissa(width)

    def describe(self) -> str:
        if self.measured:
            return "Gaussian around the mantissa, its deviation the validation error"
        return "Gaussian of variance 1/2 around the mantissa"


class _Selector(nn.Module):
    """What comes next is chosen in two steps, text or numeral, then which:
    log p(z) + log p(token | z) of every token (NumGPT, Equations 7 to 10), without bias.

    z = 0 is text, z = 1 a numeral: one of the tokens with a value beside it. ``select`` is W_z,
    ``words`` W, and ``exponents`` W_e. ``words`` has a row for numerals, too, that says nothing, so
    that it can be the table by which tokens go in.
    """

    def __init__(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        self.words = words
        self.select = projection(width, 2, 1, bias=False)
        self.exponents = projection(width, len(vocabulary.numbers), 1, bias=False)
        self.register_buffer("numerals", torch.from_numpy(vocabulary.numbers), persistent=False)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, vocabulary], float32: log-probabilities, which sum to 1."""
        numerals = cast(Tensor, self.numerals)
        kind_N2 = self.select(hidden_ND).float().log_softmax(dim=1)
        words_NV = self.words(hidden_ND).float().index_fill(1, numerals, -torch.inf)
        exponents_NE = self.exponents(hidden_ND).float().log_softmax(dim=1)
        of_words_NV = words_NV.log_softmax(dim=1) + kind_N2[:, :1]
        joint_NV: Tensor = of_words_NV.index_copy(1, numerals, exponents_NE + kind_N2[:, 1:])
        return joint_NV


class _Mantissa(ValueReader):
    """h W_f, and a Gaussian around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.point_reader = PointReader(projection(width, 1, 1, bias=False))

    def forward(self, hidden_ND: Tensor) -> Tensor:
        made: Tensor = self.point_reader(hidden_ND)
        return made

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.point_reader.losses(parameters_NP, targets_NW) + _LOG_ROOT_PI

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        return self.point_reader.point(parameters_NP)

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return Mixture.single(self.point(parameters_NP), _DEVIATION, scaling)


class _MeasuredMantissa(_Mantissa, CalibratedReader):
    """The deviation of its Gaussian is the error on the validation split."""

    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        return self.point_reader.calibrate(parameters_NP, values)

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return self.point_reader.predictive(parameters_NP, calibration, scaling)
