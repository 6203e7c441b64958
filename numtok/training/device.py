"""What a device can do at best, and how much memory was taken on it."""

import ctypes
import os
import resource
import shutil
import sys
import time
from typing import ClassVar, NamedTuple

import torch

from numtok.errors import UsageError

# Of a square matrix: large enough for the full rate.
_SIDES = {"cpu": 1024, "cuda": 8192, "mps": 4096}
_TRIES, _TRIES_AGAIN = 10, 3
_LONGEST = 1.0  # seconds, after which no further try is made: bfloat16 may be emulated
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


class MatmulRate:
    """How fast large matrix products are on a device: multiplications and additions a second.

    It is the best that was ever found in this process, because a look while something else runs
    finds too little. So a CPU is looked at again and again over a run (:meth:`look_again`); a GPU
    only once, before the run has taken its memory. And what the run itself reached, the device can
    do (:meth:`share`). On a machine that is busy throughout it is too low all the same.
    """

    _known: ClassVar[dict[tuple[str, bool, int], "_Known"]] = {}

    def __init__(self, device: torch.device, bfloat16: bool) -> None:
        self._device, self._bfloat16 = device, bfloat16
        self._key = device.type, bfloat16, torch.get_num_threads()
        self._reached = 0.0  # by the run
        if self._key not in self._known:
            self._look(_TRIES)

    @property
    def per_second(self) -> float:
        """The best so far."""
        return max(self._known[self._key].rate, self._reached)

    def look_again(self) -> None:
        """Measure once more, where that takes less than half a percent of the time since the last
        look."""
        known = self._known[self._key]
        if self._device.type == "cpu" and time.monotonic() - known.looked >= 200 * known.cost:
            self._look(_TRIES_AGAIN)

    def share(self, flops_per_second: float) -> float:
        """What was reached, as a share of it; 1 at most."""
        self._reached = max(self._reached, flops_per_second)
        return flops_per_second / self.per_second

    def _look(self, tries: int) -> None:
        started = time.monotonic()
        rate = measured_matmul_rate(self._device, self._bfloat16, tries)
        now = time.monotonic()
        before = self._known.get(self._key)
        best = rate if before is None else max(rate, before.rate)
        self._known[self._key] = _Known(best, now, now - started)


class _Known(NamedTuple):
    """What was found; when the last look was, and the seconds that it took."""

    rate: float
    looked: float
    cost: float


def measured_matmul_rate(device: torch.device, bfloat16: bool, tries: int = _TRIES) -> float:
    """Multiplications and additions a second of large matrix products in float32 or bfloat16.

    The best of some tries, in a fraction of a second; of one try where that takes long.
    """
    side = _SIDES[device.type]
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    # Not random, so that the generator stays as it is; nor zeros, on which some chips are faster.
    matrix = torch.linspace(-1, 1, side * side, device=device).view(side, side).to(dtype)
    seconds = []
    for _ in range(tries):
        wait(device)
        started = time.perf_counter()
        matrix @ matrix
        wait(device)
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > _LONGEST:
            break
    if device.type == "cuda":  # its own matrices are not what training needs
        torch.cuda.reset_peak_memory_stats(device)
    return 2 * side**3 / min(seconds)


def seed_generator(device: torch.device, seed: int) -> None:
    """As ``torch.manual_seed``, for devices of this kind alone: that one also notes, for each other
    kind, where it was called, which takes a hundred times as long as the seeding."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    elif device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
    else:
        torch.manual_seed(seed)


def wait(device: torch.device) -> None:
    """Until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def peak_memory(device: torch.device) -> int:
    """Bytes: on a GPU the most that tensors have taken, on a CPU the most that the process has. MPS
    counts no peaks: what its allocator holds, of which it gives little back."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
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


def tune_malloc() -> None:
    """Have glibc keep what is freed: each step takes as much again.

    Else it gives every large tensor back to the system, which clears its pages anew: 4 to 15% of
    the time of ``nano`` on a CPU. Nothing where the C library is another.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, -1)  # never
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)  # the most that it takes
