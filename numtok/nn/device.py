"""What a device can do at best, and how much memory was taken on it."""

import ctypes
import os
import resource
import shutil
import sys
import time
from functools import cache

import torch

from numtok.errors import UsageError

_SIDES = {"cpu": 1024, "cuda": 8192}  # of a square matrix: large enough for the full rate
_TRIES = 10
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


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


def seed_generator(device: torch.device, seed: int) -> None:
    """As ``torch.manual_seed``, for the device alone: on a CPU that one also notes, for each other
    kind of device, where it was called, which takes a hundred times as long as the seeding."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


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


def check_compiler() -> None:
    """Raises UsageError where PyTorch would find no C++ compiler."""
    name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(name) is None:
        raise UsageError(
            f"--compile needs a C++ compiler, and there is no {name!r}; install one, name it in "
            "the environment variable CXX, or leave --compile out"
        )


def keep_freed_memory() -> None:
    """Have glibc keep what is freed: each step takes as much again.

    Else it gives every large tensor back to the system, which clears its pages anew: 4 to 15% of
    the time of ``nano`` on a CPU. Nothing where the C library is another.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, -1)  # never
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)  # the most that it takes
