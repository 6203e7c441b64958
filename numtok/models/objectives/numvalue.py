"""numvalue: from left to right in two passes, the second without the values of numbers."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.batches import Batch
from numtok.models.objectives.base import FirstPass, LoggedFigure, Objective, OwnLosses
from numtok.models.training_batch import LOSSES, TrainingBatch, leftward


@dataclass(frozen=True)
class NumValueObjective(Objective, OwnLosses):
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
    embedder: ClassVar[str] = "numvalue"
    positional: ClassVar[str] = "loss"
    loss: str = setting("all", choices=LOSSES)
    project: str = setting("all", choices=LOSSES)
    reconstruction: float = setting(0.5, at_least=0, below=math.inf)
    second: bool = True
    rate: float = setting(1e-3, above=0, below=1)

    def __post_init__(self) -> None:
        if not self.second and not self.reconstruction:
            raise UsageError(
                "numvalue: second=no,reconstruction=0 is not possible: nothing would teach the "
                "projection, by which numbers are written; leave one of them in"
            )

    def requires(self) -> str | None:
        return "answer_start" if "answer" in (self.loss, self.project) else None

    @property
    def figures(self) -> tuple[LoggedFigure, ...]:
        """``reconstruction_of_others`` is that of each proj(h) and the f(x) of another number, the
        next one in what is read at once: where it is as small, all f are alike, and the
        reconstruction says nothing. The norms are mean lengths of f(x) and proj(h)."""
        return (
            LoggedFigure("projected_loss", 1.0, per_token=True),  # L_proj, 0 without a second pass
            LoggedFigure("reconstruction_loss", self.reconstruction),  # L_rec without its weight
            LoggedFigure("reconstruction_of_others", None),
            LoggedFigure("embedding_norm", None),
            LoggedFigure("projection_norm", None),
        )

    def build(self, width: int) -> nn.Module:
        return _Gated(width)

    def losses(self, module: nn.Module, seen: FirstPass) -> tuple[Tensor, ...]:
        at_P, flat = seen.places, seen.embedded.flatten(0, 1)
        value_PD = flat[at_P]
        before_PD = seen.hidden.flatten(0, 1)[at_P - 1]
        projected_PD = module(before_PD).to(flat.dtype)
        token = torch.zeros((), device=flat.device)
        if self.second:
            again_BLD = flat.index_copy(0, at_P, projected_PD).view_as(seen.embedded)
            token = seen.token_loss(seen.trunk(again_BLD))
        f_PD, proj_PD = value_PD.float(), projected_PD.float()
        own_P = 1 - F.cosine_similarity(proj_PD, f_PD, dim=1)
        f_PD, proj_PD = f_PD.detach(), proj_PD.detach()
        others_P = 1 - F.cosine_similarity(proj_PD, f_PD.roll(-1, dims=0), dim=1)
        each = (own_P, others_P, *(torch.linalg.vector_norm(one, dim=1) for one in (f_PD, proj_PD)))
        # The mean of nothing is not defined; its sum is 0.
        return token, *(one.mean() if len(at_P) else one.sum() for one in each)

    def rates(self) -> dict[str, float]:
        return {"embedder.encoder.": self.rate}  # f

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        seen = leftward(batch, self.loss)
        first = np.zeros(len(batch.tokens), np.int64)
        if self.project == "answer":  # [END] comes first; a row without an answer has none
            never = seen.tokens.shape[1]
            first = np.where(batch.answer_start < 0, never, batch.answer_start + 1)
        return replace(seen, own_from=first)


class _Gated(nn.Module):
    """A gated MLP with tanh, as LlamaMLP but for the activation: down(tanh(gate h) * up h).

    [N, D] to [N, D] through 4 D, without biases (Value-Aware, Table 5, which says no size).

    Weights begin as normal numbers of deviation 1 / sqrt(inputs), of which the paper says nothing,
    so what comes out is about as long as what goes in.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        for linear in (self.gate, self.up, self.down):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)

    def forward(self, x_ND: Tensor) -> Tensor:
        return cast(Tensor, self.down(self.gate(x_ND).tanh() * self.up(x_ND)))
