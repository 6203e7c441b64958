"""ntil: loss from weighted distances between the predicted and the true digits, and between the
numbers that the digits form (NTIL)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm

_SHARPNESS = 10.0  # of the softmax that passes on the gradients of number distances
_LARGEST = math.log(1e31)  # largest log of a digit times its power, because of float32


@dataclass(frozen=True)
class Ntil(NumberTerm):
    """Numerical token integrity loss (Fei et al. 2025): digit distances plus number distances.

    The loss at each digit is the expected distance of the predicted digit from the true one (a
    Wasserstein distance), times 1.2 for each digit that follows in the number. The loss of each
    number consists of two terms, |a - b| / (max(a, b) + 1) and log((max(a, b) + 1) / (min(a, b) +
    1)), each times 0.2. Here a is the number with the most probable digits and b the true number.
    For 412 instead of 407, the terms are 0.012107 and 0.012180. The choice of the most probable
    digits has no gradient, so gradients pass through a softmax instead.

    In this implementation, the loss of a number is added at each of its digits, whereas the paper
    averages over numbers. The paper also samples the digits with a little noise, and rescales the
    sum in each step to 0.3 of the cross-entropy. Both are omitted here, so that the loss of a batch
    does not depend on its division into parts. Digits before and after a point form two separate
    numbers, as in the paper. Tokens with several digits are treated as digits of a larger base.

    weight
        Weight of the added loss.
    base
        Ratio of the weight of each digit to the weight of the next digit.
    relative, magnitude
        Weights of the two terms of a number's loss. A weight of 0 disables the term.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NTIL (arXiv 2505.13077); public code"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.3, above=0, below=math.inf)
    base: float = setting(1.2, above=0, below=math.inf)
    relative: float = setting(0.2, at_least=0, below=math.inf)
    magnitude: float = setting(0.2, at_least=0, below=math.inf)

    def losses(self, digits: DigitLogits) -> Tensor:
        runs_N = digits.runs_N + 1  # positions without a value form a run that is ignored
        zeros_R = digits.truth_N.new_zeros(len(runs_N) + 1)
        places_N = digits.places_N.to(zeros_R.dtype)
        last_R = zeros_R.scatter_reduce(0, runs_N, places_N, "amin", include_self=False)
        power_N = places_N - last_R[runs_N]
        digits_N = (digits.p_NT * digits.apart_NT.abs()).sum(dim=1) * self.base**power_N

        soft_NT = (digits.logits_NT * _SHARPNESS).softmax(dim=1)
        best_N1 = soft_NT.argmax(dim=1, keepdim=True)
        hard_NT = torch.zeros_like(soft_NT).scatter(1, best_N1, 1.0)
        best_N = ((hard_NT + soft_NT - soft_NT.detach()) * digits.values_T).sum(dim=1)
        base = (digits.values_T[-1] + 1).log()
        unit_N = (power_N * base).minimum(_LARGEST - base).exp()
        predicted_R = zeros_R.scatter_add(0, runs_N, best_N * unit_N)
        true_R = zeros_R.scatter_add(0, runs_N, digits.truth_N * unit_N)
        more_R = torch.maximum(predicted_R, true_R) + 1
        less_R = torch.minimum(predicted_R, true_R) + 1
        numbers_R = self.relative * (predicted_R - true_R).abs() / more_R
        numbers_R = numbers_R + self.magnitude * (more_R / less_R).log()
        return digits_N + numbers_R[runs_N]
