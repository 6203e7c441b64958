"""AdamW optimizer that calls PyTorch's ``adamw`` function directly and keeps its state per
parameter.

``torch.optim.AdamW`` calls the same function with the same state, but its first step imports
PyTorch's compiler. That import takes a third of the time until the first step of ``numtok train``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.profiler import record_function


@dataclass(frozen=True)
class Group:
    """Parameters that share a weight decay and a learning rate.

    times
        Factor applied to the learning rate of each step.
    """

    parameters: Sequence[nn.Parameter]
    weight_decay: float
    times: float = 1.0


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2) and bias-corrected
    moments.

    ``state`` maps each trained parameter to ``step`` (the number of updates, float32) and to the
    moments ``exp_avg`` and ``exp_avg_sq``, which have the shape and device of the parameter.
    Parameters without a gradient are skipped.

    >>> weight = nn.Parameter(torch.tensor([1.0, -1.0]))
    >>> optimizer = AdamW([Group([weight], weight_decay=0.0)])
    >>> weight.square().sum().backward()
    >>> optimizer.step(0.1)
    >>> [round(value, 6) for value in weight.tolist()]
    [0.9, -0.9]
    """

    def __init__(self, groups: Iterable[Group], betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.groups = tuple(groups)
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}
        self._betas = betas

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    @record_function("Optimizer.step#AdamW.step")  # the name that traces show
    def step(self, rate: float) -> None:
        """Update every parameter that has a gradient.

        ``rate`` is the learning rate of this step.
        """
        first, second = self._betas
        for group in self.groups:
            updated = [weight for weight in group.parameters if weight.grad is not None]
            states = [self._state_of(weight) for weight in updated]
            adamw(
                updated,  # type: ignore[arg-type]  # a list of tensors
                [weight.grad for weight in updated if weight.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                max_exp_avg_sqs=[],
                state_steps=[state["step"] for state in states],
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
