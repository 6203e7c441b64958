"""CPU cores and memory that this process may use, given the limits of its job or container."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cores() -> int:
    """Return the number of CPU cores that this process may use, at least 1.

    The number is limited by CPU affinity (``taskset``, Slurm) and by the CPU quota of the process's
    control group (``docker run --cpus``).
    """
    bound = getattr(os, "sched_getaffinity", None)
    count = len(bound(0)) if bound else os.cpu_count() or 1
    times = [*_limits("cpu", "cpu.max")]
    quotas, periods = (_limits("cpu", f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    times += map(" ".join, zip(quotas, periods, strict=False))
    return max(1, min([count, *(math.ceil(quota) for text in times if (quota := _quota(text)))]))


def memory() -> int:
    """Return the memory in bytes that this process may use.

    This is the machine's memory or the limit of the process's control group, whichever is smaller,
    divided evenly among the ranks that a launcher started on this machine.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    names = "memory.max", "memory.limit_in_bytes"
    limits = [int(text) for name in names for text in _limits("memory", name) if text.isdigit()]
    return min([physical, *limits]) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _quota(text: str) -> float | None:
    """Return the cores allowed by a quota such as ``"150000 100000"`` (microseconds per period).

    None means no limit.
    """
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _limits(controller: str, name: str) -> Iterator[str]:
    """Yield the content of the file ``name`` for the process's control group and all its parents.

    Supports version 2 (a single tree of groups) and version 1 (one tree per controller).
    """
    try:
        lines = [line.split(":", 2) for line in _OWN.read_text().splitlines()]
    except OSError:  # not Linux
        return
    for _, controllers, path in lines:
        if controllers and controller not in controllers.split(","):
            continue
        top = _GROUPS / controllers if controllers else _GROUPS
        own = top / path.lstrip("/")
        for group in (own, *own.parents):
            if group.is_relative_to(top):
                try:
                    yield (group / name).read_text().strip()
                except OSError:  # a container has its own root, where the path does not exist
                    continue
