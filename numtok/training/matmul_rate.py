"""How fast a device multiplies large matrices, which is what it can do at best."""

import time
from typing import ClassVar, NamedTuple

import torch

from numtok.training.device import wait

# Of a square matrix: large enough for the full rate.
_SIDES = {"cpu": 1024, "cuda": 8192, "mps": 4096}
_TRIES, _TRIES_AGAIN = 10, 3
_LONGEST = 1.0  # seconds, after which no further try is made: bfloat16 may be emulated


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
