"""The widest floats of a device: MPS has no float64.

What is worked out beside a model (probabilities, sums of losses) is in float64 where there is one.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def widest(device: torch.device) -> torch.dtype:
    """float64, or float32 where a device has no other."""
    return torch.float32 if device.type == "mps" else torch.float64


def widened(tensor: Tensor) -> Tensor:
    """In the widest floats of its device, of any shape."""
    return tensor.to(widest(tensor.device))


def in_float64(tensor: Tensor) -> Tensor:
    """On its device, or on the host where that has no float64; of any shape. For what goes to the
    host anyway."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def on_host(tensor: Tensor) -> NDArray[np.float64]:
    """float64 of any shape: the same numbers as an array."""
    return tensor.cpu().double().numpy()
