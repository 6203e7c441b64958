"""AdamW: PyTorch's kernel, and its state as tensors by parameter.

``torch.optim.AdamW`` calls the same function with the same state. Its first step also imports
PyTorch's compiler, which takes longer than many a small model learns: a third of the time until
the first step of ``numtok train``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.profiler import record_function


@dataclass(frozen=True)
class Group:
    """Parameters that are learnt alike, at ``times`` the rate of a step."""

    parameters: Sequence[nn.Parameter]
    weight_decay: float
    times: float = 1.0


class AdamW:
    """Decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2) with bias-corrected moments.

    ``state`` has, of each parameter that was learnt, ``step`` (how often, float32) and the moments
    ``exp_avg`` and ``exp_avg_sq``, of its shape and on its device. A parameter without a gradient
    is left alone.

    >>> weight = nn.Parameter(torch.tensor([1.0, -1.0]))
    >>> optimizer = AdamW([Group([weight], weight_decay=0.0)])
    >>> weight.square().sum().backward()
    >>> optimizer.step(0.1)
    >>> [round(one, 6) for one in weight.tolist()]
    [0.9, -0.9]
    """

    def __init__(self, groups: Iterable[Group], betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.groups = tuple(groups)
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}
        self._betas = betas

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    @record_function("Optimizer.step#AdamW.step")  # as traces have it of PyTorch's own
    def step(self, rate: float) -> None:
        """Learn from the gradients that are there."""
        first, second = self._betas
        for group in self.groups:
            learnt = [one for one in group.parameters if one.grad is not None]
            states = [self._state_of(one) for one in learnt]
            adamw(
                learnt,  # type: ignore[arg-type]  # a list of tensors
                [one.grad for one in learnt if one.grad is not None],
                [one["exp_avg"] for one in states],
                [one["exp_avg_sq"] for one in states],
                max_exp_avg_sqs=[],
                state_steps=[one["step"] for one in states],
                fused=True,
                amsgrad=False,
                beta1=first,
                beta2=second,
                lr=rate * group.times,
                weight_decay=group.weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]
