"""Floating-point types of devices: MPS has no float64.

Computations outside of a model (probabilities, sums of losses) use float64 where available.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def widest(device: torch.device) -> torch.dtype:
    """Return float64, or float32 for devices without float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def widened(tensor: Tensor) -> Tensor:
    """Convert a tensor of any shape to the widest float type of its device."""
    return tensor.to(widest(tensor.device))


def in_float64(tensor: Tensor) -> Tensor:
    """Convert a tensor of any shape to float64, on the host if its device has none.

    For data that goes to the host anyway.
    """
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def on_host(tensor: Tensor) -> NDArray[np.float64]:
    """Return a tensor of any shape as a float64 array of that shape."""
    return tensor.cpu().double().numpy()
