"""Devices: names, counts, seeds, memory, and how fast one multiplies matrices."""

import ctypes
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

import torch

from numtok.config import threads
from numtok.errors import TrainingFailed, UsageError, is_out_of_memory
from numtok.store.engines.workers import check_processes
from numtok.training.ranks import launched

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def device_of(name: str) -> torch.device:
    """``auto`` (a GPU of CUDA where there is one, else the CPU), ``cpu``, ``cuda`` (of several
    ranks each its own), ``cuda:1`` or ``mps``; UsageError for others.

    Also holds PyTorch to ``NUMTOK_THREADS``, where that is set, and a GPU to all of float32.
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", name):
        allowed = "auto, cpu, cuda, cuda:N and mps"
        raise UsageError(f"--device {name!r} is not possible; allowed are {allowed}")
    if (most := threads()) is not None:
        torch.set_num_threads(most)
    if name == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: this PyTorch sees no GPU of Apple's; give --device cpu")
    if name == "mps":
        return torch.device("mps")
    found = torch.cuda.is_available()
    if name == "cpu" or (name == "auto" and not found):
        return torch.device("cpu")
    if not found:
        raise UsageError(f"--device {name}: this PyTorch sees no GPU; give --device cpu")
    index = name.partition(":")[2] or (os.environ.get("LOCAL_RANK", "0") if launched() else "")
    if index and int(index) >= (count := torch.cuda.device_count()):
        raise UsageError(f"--device cuda:{index}: this PyTorch sees {count} GPUs, from cuda:0 on")
    torch.backends.cudnn.rnn.fp32_precision = "ieee"  # type: ignore[attr-defined]  # not TF32
    return torch.device(f"cuda:{index}" if index else "cuda")


def threads_alone() -> int:
    """Of a process that shares its machine with no other: ``NUMTOK_THREADS``, or as many as PyTorch
    takes."""
    return threads() or torch.get_num_threads()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Have PyTorch use this many threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_count(asked: str, device: torch.device) -> int:
    """How many processes ``--devices`` means; UsageError for more GPUs than there are, for more
    processes than the cores can run, or for several where one GPU is named."""
    there = torch.cuda.device_count() if device.type == "cuda" else 1
    if asked == "all":
        return there if device.index is None else 1
    count = int(asked)
    if device.index is not None and count > 1:
        raise UsageError(
            f"--devices {asked}: --device {device} is one of them; give --device {device.type}"
        )
    if device.type == "cpu":
        return check_processes("devices", count)
    if count > there:
        gpus = f"{there} GPU" + "s" * (there != 1)
        raise UsageError(f"--devices {asked}: this PyTorch sees {gpus}; give {there}, or all")
    return count


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


@contextmanager
def oom_advice(advice: str) -> Iterator[None]:
    """Turn a lack of memory into TrainingFailed: "out of memory with " and what to do."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise TrainingFailed(f"out of memory with {advice}") from error


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


# Side of a square matrix that is large enough for the full rate.
_SIDES = {"cpu": 1024, "cuda": 8192, "mps": 4096}
_TRIES, _TRIES_AGAIN = 10, 3
_LONGEST = 1.0  # seconds, after which no further try is made: bfloat16 may be emulated


class MatmulRate:
    """Speed of large matrix products on a device: multiplications and additions per second.

    It is the best rate measured in this process, because a measurement next to other work is too
    low. A CPU is measured repeatedly over a run (:meth:`look_again`), a GPU only once, before the
    run has taken its memory. A rate that the run itself reaches counts as measured (:meth:`share`).
    On a machine that is always busy the rate stays too low.
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
        """Measure once more if that takes less than 0.5% of the time since the last measurement."""
        known = self._known[self._key]
        if self._device.type == "cpu" and time.monotonic() - known.looked >= 200 * known.cost:
            self._look(_TRIES_AGAIN)

    def share(self, flops_per_second: float) -> float:
        """Return a speed as a fraction of the best one, at most 1."""
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
    """The best rate, the time of the last measurement, and how long it took."""

    rate: float
    looked: float
    cost: float


def measured_matmul_rate(device: torch.device, bfloat16: bool, tries: int = _TRIES) -> float:
    """Measure multiplications and additions per second in float32 or bfloat16: the best of a few
    tries within a second, or the only try if one takes longer."""
    side = _SIDES[device.type]
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    # Random values would advance the generator, and some chips are faster on zeros.
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
