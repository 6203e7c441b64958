"""Options for sampling tokens from a decoder: temperature, top-k and top-p."""

from dataclasses import dataclass

import torch
from torch import Tensor

from numtok.errors import UsageError


@dataclass(frozen=True)
class Sampling:
    """Options for sampling tokens from a decoder.

    temperature
        Divisor of the logits. Values below 1 sharpen the distribution.
    top_k
        Sample only from the ``top_k`` most probable tokens; 0 for all tokens.
    top_p
        Sample only from the smallest set of most probable tokens with at least this total
        probability (nucleus sampling).
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
                raise UsageError(f"{name} must be {allowed} (got {value})")

    def of(self, log_p_MV: Tensor) -> Tensor:
        """Apply the options to the log-probabilities [M, V] of tokens, and return the result.

        The result is not normalized. It is -inf for tokens that must not be sampled.
        """
        scores = log_p_MV / self.temperature
        if 0 < self.top_k < scores.shape[1]:
            kept, which = scores.topk(self.top_k, dim=1)  # exactly top_k, even with ties
            scores = torch.full_like(scores, -torch.inf).scatter(1, which, kept)
        if self.top_p < 1:
            falling, order = scores.softmax(dim=1).sort(dim=1, descending=True)
            before = falling.cumsum(dim=1) - falling
            left_out = torch.zeros_like(before, dtype=torch.bool).scatter(
                1, order, before >= self.top_p
            )
            scores = scores.masked_fill(left_out, -torch.inf)
        return scores
