"""numgpt: predicts whether a number follows, then its exponent and mantissa (NumGPT, Jin et al.
2023)."""

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
_DEVIATION = math.sqrt(0.5)  # standard deviation of exp(-(f - h W_f)^2) / sqrt(pi)
_LOG_ROOT_PI = math.log(math.pi) / 2


@dataclass(frozen=True)
class NumGPTHead(RealHead, TokenHead):
    """NumGPT's head (Equations 7 to 11): a selector W_z between text and number, and projections W
    for text tokens, W_e for exponents and W_f for mantissas, all without bias. Exponent and
    mantissa are predicted independently.

    The loss is Equation 12. Its first three terms are the cross-entropy over the joint vocabulary.
    The term for a mantissa f is (f - h W_f)^2 + log sqrt(pi), the negative log-density of a
    Gaussian with variance 1/2. The sum is -log p of all target tokens and mantissas.

    per
        ``token``: divide the whole sum by the number of target tokens, so the loss is the mean of
        -log p. ``number``: divide the mantissa losses by the number of target numbers, so mantissas
        count equally in texts with few numbers; the loss is then not a likelihood. (The authors'
        code divides each of the four terms by the number of all positions.)
    measured
        Use the root mean squared error on the validation split as the standard deviation of the
        predictive distribution, as the head ``scalar`` does. By default it is sqrt(1/2), as in
        Equation 11.

    A number with exponent e has the density p(e) p(f) 10^-e (``distributions.multiples``).
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
                "--head numgpt predicts the exponent as a token and the mantissa as its value; "
                "this data has no such tokens. Encode with --scheme numgpt or choose another --head"
            )
        return _Selector(words, vocabulary, width)

    def build(self, width: int) -> ValueReader:
        return _MeasuredMantissa(width) if self.measured else _Mantissa(width)

    def describe(self) -> str:
        if self.measured:
            return "Gaussian around the mantissa, with the validation error as standard deviation"
        return "Gaussian of variance 1/2 around the mantissa"


class _Selector(nn.Module):
    """Predict the next token in two steps: first text or number, then which token.

    log p(z) + log p(token | z) for every token (NumGPT, Equations 7 to 10), without bias. z = 0 is
    text, z = 1 a number: a token that carries a value. ``select`` is W_z, ``words`` W, and
    ``exponents`` W_e. The rows of ``words`` that belong to numbers are unused, so that it can share
    its weights with the input embedding.
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
    """Predicts the mantissa h W_f, and a Gaussian around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.point_reader = PointReader(projection(width, 1, 1, bias=False))

    def forward(self, hidden_ND: Tensor) -> Tensor:
        mantissa: Tensor = self.point_reader(hidden_ND)
        return mantissa

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.point_reader.losses(parameters_NP, targets_NW) + _LOG_ROOT_PI

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        return self.point_reader.point(parameters_NP)

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return Mixture.single(self.point(parameters_NP), _DEVIATION, scaling)


class _MeasuredMantissa(_Mantissa, CalibratedReader):
    """Uses the validation error as the standard deviation of the Gaussian."""

    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        return self.point_reader.calibrate(parameters_NP, values)

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return self.point_reader.predictive(parameters_NP, calibration, scaling)
