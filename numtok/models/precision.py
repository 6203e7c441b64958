"""Floating-point types: of weights, and on devices with and without float64, which MPS (Apple GPUs)
does not support.

Computations outside a model, such as probabilities and sums of losses, use float64 if available.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class InFloat32(nn.Module):
    """Base class for modules that keep their float32 weights if a model around them is converted,
    for example to bfloat16, whose 8 bits are too coarse for a value."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "InFloat32":
        def moved(tensor: Tensor) -> Tensor:
            result = fn(tensor)
            return result if result.dtype == tensor.dtype else tensor.to(result.device)

        return super()._apply(moved, recurse)  # type: ignore[no-untyped-call, no-any-return]


def widest(device: torch.device) -> torch.dtype:
    """Return the widest float type of a device: float64, or float32 if float64 is unsupported."""
    return torch.float32 if device.type == "mps" else torch.float64


def widened(tensor: Tensor) -> Tensor:
    """Convert a tensor of any shape to the widest float type of its device."""
    return tensor.to(widest(tensor.device))


def in_float64(tensor: Tensor) -> Tensor:
    """Convert a tensor of any shape to float64, on the CPU if its device does not support float64.

    Use this for data that is copied to the host anyway.
    """
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def on_host(tensor: Tensor) -> NDArray[np.float64]:
    """Copy a tensor of any shape to the host, as a float64 array of the same shape."""
    return tensor.cpu().double().numpy()
