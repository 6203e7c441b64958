"""numvalue: value-aware next-token prediction in two passes; the second pass replaces the
embeddings of numbers with predicted ones."""

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
    """Value-aware next-token prediction: L = L_emb + L_proj + lambda L_rec (Value-Aware, Section
    3.2).

    L_emb is the cross-entropy of the next token. Each ``<num>`` is embedded as the vector f(x),
    which the embedder computes from the number after it. A gated MLP projects the state
    before each ``<num>`` to proj(h). In a second pass, proj(h) replaces f(x); L_proj is the
    cross-entropy of this pass. L_rec is the mean of 1 - cos(proj(h), f(x)).

    Gradients are never stopped. The gradients of L_proj pass through both passes, the projection,
    and f in the first pass; L_rec moves f and proj(h) towards each other. A cosine does not
    constrain the lengths of vectors, and L_rec is also small if f is the same for all numbers.
    Therefore the lengths are logged, as well as L_rec between proj(h) and f of a different number.

    In generation, numbers in the prompt use f(x), and each generated ``<num>`` uses proj(h).

    loss
        ``all``: every token contributes to the loss. ``answer``: only tokens from ``answer_start``
        onwards do, in both passes.
    project
        ``all``, as in the paper: each ``<num>`` is projected. ``answer``: only each ``<num>``
        from ``answer_start`` onwards; the question keeps f(x) in both passes, as in generation.
    reconstruction
        The weight lambda of L_rec; 0 disables it.
    second
        Run the second pass. Without it, only L_rec trains the projection.
    rate
        Learning rate of f, with the same warm-up and cosine schedule as the other weights. The
        default is the paper's, 20 times its learning rate of 5e-5 (Table 5). At a learning rate of
        1e-3, ``rate=0.02`` is that ratio.
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
                "numvalue: second=no cannot be combined with reconstruction=0: nothing would "
                "train the projection. Set one of them"
            )

    def requires(self) -> str | None:
        return "answer_start" if "answer" in (self.loss, self.project) else None

    @property
    def figures(self) -> tuple[LoggedFigure, ...]:
        """The losses and vector lengths that are logged.

        ``reconstruction_of_others`` is L_rec between each proj(h) and the f(x) of the next number
        in the batch. If it is as small as L_rec, the vectors f(x) of all numbers are similar, and
        L_rec is not informative. The norms are the mean lengths of f(x) and proj(h).
        """
        return (
            LoggedFigure("projected_loss", 1.0, per_token=True),  # L_proj, 0 without a second pass
            LoggedFigure("reconstruction_loss", self.reconstruction),  # L_rec without its weight
            LoggedFigure("reconstruction_of_others", None),
            LoggedFigure("embedding_norm", None),
            LoggedFigure("projection_norm", None),
        )

    def build(self, width: int) -> nn.Module:
        return _Gated(width)

    def losses(self, module: nn.Module, first_pass: FirstPass) -> tuple[Tensor, ...]:
        at_P, flat = first_pass.places, first_pass.embedded.flatten(0, 1)
        value_PD = flat[at_P]
        before_PD = first_pass.hidden.flatten(0, 1)[at_P - 1]
        projected_PD = module(before_PD).to(flat.dtype)
        token = torch.zeros((), device=flat.device)
        if self.second:
            again_BLD = flat.index_copy(0, at_P, projected_PD).view_as(first_pass.embedded)
            token = first_pass.token_loss(first_pass.trunk(again_BLD))
        f_PD, proj_PD = value_PD.float(), projected_PD.float()
        own_P = 1 - F.cosine_similarity(proj_PD, f_PD, dim=1)
        f_PD, proj_PD = f_PD.detach(), proj_PD.detach()
        others_P = 1 - F.cosine_similarity(proj_PD, f_PD.roll(-1, dims=0), dim=1)
        each = (
            own_P,
            others_P,
            *(torch.linalg.vector_norm(vectors, dim=1) for vectors in (f_PD, proj_PD)),
        )
        # The mean of an empty tensor is NaN; its sum is 0.
        return token, *(values.mean() if len(at_P) else values.sum() for values in each)

    def rates(self) -> dict[str, float]:
        return {"embedder.encoder.": self.rate}  # f

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        example = leftward(batch, self.loss)
        first = np.zeros(len(batch.tokens), np.int64)
        if self.project == "answer":  # [END] comes first; a row without an answer has no position
            never = example.tokens.shape[1]
            first = np.where(batch.answer_start < 0, never, batch.answer_start + 1)
        return replace(example, own_from=first)


class _Gated(nn.Module):
    """A gated MLP with tanh, LlamaMLP except for the activation: down(tanh(gate h) * up h).

    Maps [N, D] to [N, D] through 4 D hidden units, without biases (Value-Aware, Table 5, which
    gives no size). Weights are initialized from a normal distribution with standard deviation 1 /
    sqrt(inputs), which the paper leaves open, so outputs are about as long as inputs.
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
