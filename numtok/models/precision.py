"""Floating-point types for devices with and without float64; MPS (Apple GPUs) does not support it.

Computations outside a model, such as probabilities and sums of losses, use float64 if available.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


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
