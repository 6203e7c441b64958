"""numvalue: from left to right in two passes, the second without the values of numbers."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.errors import UsageError
from numtok.models.batches import Batch
from numtok.models.objectives._leftward import LOSSES, leftward
from numtok.models.objectives.base import Objective, TrainingBatch, TwoPasses


@dataclass(frozen=True)
class NumValueObjective(Objective):
    """L = L_emb + L_proj + lambda L_rec (Value-Aware, Section 3.2).

    L_emb is the cross-entropy of the next token, each ``<num>`` being f(x), the vector that the
    embedder makes of the number behind it. There the state before a ``<num>`` is projected,
    proj(h), by a gated MLP. In the second pass proj(h) stands where ``<num>`` stands: L_proj is its
    cross-entropy. L_rec is 1 - cos(proj(h), f(x)), its mean over what was projected. Nothing is
    detached: L_proj reaches the trunk by both passes and the projection, and f where it stands in
    the first; L_rec draws f to proj(h) as much as proj(h) to f. A cosine leaves the lengths of both
    free, and is met, too, where every number has the same f; so the lengths are logged, and the
    same loss of each proj(h) with the f of another number. When the model writes, f(x) stands in
    the prompt, and proj(h) where it has written ``<num>`` itself.

    loss
        ``all``: every token is learnt. ``answer``: those from ``answer_start`` on, in both passes.
    project
        ``all``, as the paper writes: each ``<num>`` is projected. ``answer``: those from
        ``answer_start`` on; those of the question are f(x) in both passes, as they are when the
        model writes.
    reconstruction
        lambda; 0 leaves L_rec out.
    second
        Whether there is the second pass; without it L_rec alone teaches the projection.
    rate
        The learning rate of f, with the same warm-up and cosine as that of everything else.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Value-Aware, Section 3.2 and Table 5"
    causal: ClassVar[bool] = True
    positional: ClassVar[str] = "loss"
    loss: str = "all"
    project: str = "all"
    reconstruction: float = 0.5
    second: bool = True
    rate: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("loss", "project"):
            if (got := getattr(self, name)) not in LOSSES:
                raise UsageError(
                    f"numvalue: {name}={got!r} is not possible; allowed are {', '.join(LOSSES)}"
                )
        if not 0 <= self.reconstruction < math.inf:
            raise UsageError(
                f"numvalue: reconstruction={self.reconstruction:g} is not possible; it is 0 or more"
            )
        if not 0 < self.rate < 1:
            raise UsageError(
                f"numvalue: rate={self.rate:g} is not possible; it is above 0 and below 1"
            )
        if not self.second and not self.reconstruction:
            raise UsageError(
                "numvalue: second=no,reconstruction=0 is not possible: nothing would teach the "
                "projection, by which numbers are written; leave one of them in"
            )

    def requires(self) -> str | None:
        return "answer_start" if "answer" in (self.loss, self.project) else None

    @property
    def passes(self) -> TwoPasses:
        return TwoPasses(self.second, self.reconstruction, self.rate)

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        seen = leftward(batch, self.loss)
        first = np.zeros(len(batch.tokens), np.int64)
        if self.project == "answer":  # [END] comes first; a row without an answer has none
            never = seen.tokens.shape[1]
            first = np.where(batch.answer_start < 0, never, batch.answer_start + 1)
        return replace(seen, projects_from=first)
