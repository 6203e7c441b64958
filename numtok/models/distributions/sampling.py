"""How a decoder's tokens are drawn."""

from dataclasses import dataclass

import torch
from torch import Tensor

from numtok.errors import UsageError


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    temperature
        Logits are divided by it; below 1 the probable becomes more probable.
    top_k
        Only so many most probable tokens; 0: all.
    top_p
        Only the fewest most probable tokens that together have this probability (nucleus).
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        for name, value, good, allowed in (
            ("--temperature", self.temperature, self.temperature > 0, "above 0"),
            ("--top-k", self.top_k, self.top_k >= 0, "0 (all) or more"),
            ("--top-p", self.top_p, 0 < self.top_p <= 1, "above 0, up to 1"),
        ):
            if not good:
                raise UsageError(f"{name} {value} is not possible; it is {allowed}")

    def of(self, log_p_MV: Tensor) -> Tensor:
        """The log-probabilities to draw by, [M, V], not normalised; -inf stays."""
        scores = log_p_MV / self.temperature
        if 0 < self.top_k < scores.shape[1]:
            kept, which = scores.topk(self.top_k, dim=1)  # of equal ones no more either
            scores = torch.full_like(scores, -torch.inf).scatter(1, which, kept)
        if self.top_p < 1:
            falling, order = scores.softmax(dim=1).sort(dim=1, descending=True)
            before = falling.cumsum(dim=1) - falling
            left_out = torch.zeros_like(before, dtype=torch.bool).scatter(
                1, order, before >= self.top_p
            )
            scores = scores.masked_fill(left_out, -torch.inf)
        return scores
