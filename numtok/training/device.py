"""Devices for training: names, counts, threads, seeds, memory, and matrix multiplication speed."""

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
from numtok.names import counted
from numtok.store.engines.workers import check_processes
from numtok.training.ranks import launched

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def device_of(name: str) -> torch.device:
    """Return the device with the given name.

    Names are ``auto`` (a CUDA GPU if there is one, else the CPU), ``cpu``, ``cuda`` (each rank's
    own GPU), ``cuda:N`` and ``mps``. This function also limits PyTorch to ``NUMTOK_THREADS``
    threads, if that environment variable is set, and turns off TF32 in recurrent layers on a GPU.

    Raises UsageError if the name is invalid or the device is not available.
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", name):
        allowed = "auto, cpu, cuda, cuda:N and mps"
        raise UsageError(f"--device must be one of {allowed} (got {name!r})")
    if (most := threads()) is not None:
        torch.set_num_threads(most)
    if name == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: PyTorch finds no Apple GPU. Use --device cpu")
    if name == "mps":
        return torch.device("mps")
    available = torch.cuda.is_available()
    if name == "cpu" or (name == "auto" and not available):
        return torch.device("cpu")
    if not available:
        raise UsageError(f"--device {name}: PyTorch finds no GPU. Use --device cpu")
    index = name.partition(":")[2] or (os.environ.get("LOCAL_RANK", "0") if launched() else "")
    if index and int(index) >= (count := torch.cuda.device_count()):
        raise UsageError(
            f"--device cuda:{index}: PyTorch finds {counted(count, 'GPU')}, numbered from cuda:0"
        )
    torch.backends.cudnn.rnn.fp32_precision = "ieee"  # type: ignore[attr-defined]  # not TF32
    return torch.device(f"cuda:{index}" if index else "cuda")


def threads_alone() -> int:
    """Return the number of threads for a process that has the machine to itself.

    This is the value of ``NUMTOK_THREADS`` if it is set, and PyTorch's default otherwise.
    """
    return threads() or torch.get_num_threads()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Context manager that sets the number of PyTorch threads to ``count`` within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_count(devices: str, device: torch.device) -> int:
    """Return the number of training processes for a value of ``--devices``, a number or ``all``.

    Raises UsageError if there are too few GPUs or CPU cores for that number, or if ``device`` is
    one specific GPU and the number is above 1.
    """
    available = torch.cuda.device_count() if device.type == "cuda" else 1
    if devices == "all":
        return available if device.index is None else 1
    count = int(devices)
    if device.index is not None and count > 1:
        raise UsageError(
            f"--devices {devices} cannot be combined with --device {device}, which is one GPU. Use "
            f"--device {device.type}"
        )
    if device.type == "cpu":
        return check_processes("devices", count)
    if count > available:
        gpus = counted(available, "GPU")
        raise UsageError(f"--devices {devices}: PyTorch finds {gpus}. Use {available}, or all")
    return count


def seed_generator(device: torch.device, seed: int) -> None:
    """Seed PyTorch's random generator for one type of device.

    This is much faster than ``torch.manual_seed``. For every other type of device, that function
    also records where it was called, which takes a hundred times as long as seeding.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    elif device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
    else:
        torch.manual_seed(seed)


def wait(device: torch.device) -> None:
    """Wait until the device has finished all queued work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def peak_memory(device: torch.device) -> int:
    """Return the peak memory use in bytes: of the tensors on a GPU, or of the process on a CPU.

    On MPS, which does not track the peak, the result is the memory that the allocator currently
    holds. It rarely shrinks.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # kibibytes elsewhere


@contextmanager
def oom_advice(advice: str) -> Iterator[None]:
    """Context manager that turns out-of-memory errors into TrainingFailed.

    The message is "out of memory with " followed by ``advice``.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise TrainingFailed(f"out of memory with {advice}") from error


def check_compiler() -> None:
    """Raise UsageError if PyTorch would not find a C++ compiler for compiling models."""
    name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(name) is None:
        raise UsageError(
            f"--compile needs a C++ compiler, and {name!r} was not found. Install one, set the "
            "environment variable CXX, or remove --compile"
        )


def tune_malloc() -> None:
    """Make glibc keep freed memory, because each training step allocates the same amount again.

    By default, glibc returns every large tensor to the system, which then has to clear the pages
    when they are allocated again. This takes 4 to 15% of the training time of the preset ``nano``
    on a CPU. With other C libraries, the function has no effect.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, -1)  # never
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)  # the most that it takes


# Side of a square matrix that is large enough for the full rate.
_SIDES = {"cpu": 1024, "cuda": 8192, "mps": 4096}
_TRIES, _TRIES_AGAIN = 10, 3
_LONGEST = 1.0  # seconds until measuring stops early: bfloat16 may be emulated


class MatmulRate:
    """The speed of large matrix products on a device, in multiplications and additions per second.

    It is the best speed measured in this process, because other work on the machine slows
    measurements down. A CPU is measured repeatedly during a run (:meth:`remeasure`); a GPU is
    measured only once, before the run allocates memory. A speed that the run itself reaches also
    counts as a measurement (:meth:`share`). On a machine that is always busy, the result is too
    low.
    """

    _measured: ClassVar[dict[tuple[str, bool, int], "_Measurement"]] = {}

    def __init__(self, device: torch.device, bfloat16: bool) -> None:
        self._device, self._bfloat16 = device, bfloat16
        self._key = device.type, bfloat16, torch.get_num_threads()
        self._reached = 0.0  # by the run
        if self._key not in self._measured:
            self._measure(_TRIES)

    @property
    def per_second(self) -> float:
        """Best speed so far, in multiplications and additions per second."""
        return max(self._measured[self._key].rate, self._reached)

    def remeasure(self) -> None:
        """Repeat the measurement on a CPU, if it takes less than 0.5% of the time since the last
        one.

        The method has no effect on other devices.
        """
        last = self._measured[self._key]
        if self._device.type == "cpu" and time.monotonic() - last.time >= 200 * last.cost:
            self._measure(_TRIES_AGAIN)

    def share(self, flops_per_second: float) -> float:
        """Return a training speed as a fraction of the best matrix multiplication speed, at most 1.

        If the training speed is higher than the best speed so far, it becomes the best speed.
        """
        self._reached = max(self._reached, flops_per_second)
        return flops_per_second / self.per_second

    def _measure(self, tries: int) -> None:
        started = time.monotonic()
        rate = measured_matmul_rate(self._device, self._bfloat16, tries)
        now = time.monotonic()
        before = self._measured.get(self._key)
        best = rate if before is None else max(rate, before.rate)
        self._measured[self._key] = _Measurement(best, now, now - started)


class _Measurement(NamedTuple):
    """The best rate, the time of the last measurement, and how long it took in seconds."""

    rate: float
    time: float
    cost: float


def measured_matmul_rate(device: torch.device, bfloat16: bool, tries: int = _TRIES) -> float:
    """Measure the speed of large matrix products, in multiplications and additions per second.

    The result is the best of ``tries`` measurements, or of fewer if they take more than a second in
    total. Matrices are in bfloat16 if ``bfloat16`` is True, and in float32 otherwise.
    """
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
    if device.type == "cuda":  # exclude the memory of this measurement
        torch.cuda.reset_peak_memory_stats(device)
    return 2 * side**3 / min(seconds)
