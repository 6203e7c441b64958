"""What a device can do at best, and how much memory was taken on it."""

import resource
import sys
import time
from functools import cache

import torch

_SIDES = {"cpu": 1024, "cuda": 8192}  # of a square matrix: large enough for the full rate
_TRIES = 10


def matmul_rate(device: torch.device, bfloat16: bool) -> float:
    """As :func:`measured_matmul_rate`, once a process and number of threads."""
    return _known(device, bfloat16, torch.get_num_threads())


@cache
def _known(device: torch.device, bfloat16: bool, threads: int) -> float:
    return measured_matmul_rate(device, bfloat16)


def measured_matmul_rate(device: torch.device, bfloat16: bool) -> float:
    """Multiplications and additions a second of large matrix products in float32 or bfloat16.

    The best of some tries, in a fraction of a second.
    """
    side = _SIDES[device.type]
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    # Not random, so that the generator stays as it is; nor zeros, on which some chips are faster.
    matrix = torch.linspace(-1, 1, side * side, device=device).view(side, side).to(dtype)
    seconds = []
    for _ in range(_TRIES):
        wait(device)
        started = time.perf_counter()
        matrix @ matrix
        wait(device)
        seconds.append(time.perf_counter() - started)
    if device.type == "cuda":  # its own matrices are not what training needs
        torch.cuda.reset_peak_memory_stats(device)
    return 2 * side**3 / min(seconds)


def wait(device: torch.device) -> None:
    """Until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(device: torch.device) -> int:
    """Bytes: on a GPU the most that tensors have taken, on a CPU the most that the process has."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # kibibytes elsewhere
