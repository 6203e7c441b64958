"""What of this machine a process may use: a job, a container or a launcher may give it a part."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cores() -> int:
    """Cores that this process may run on: those that it is bound to (``taskset``, Slurm), and no
    more than the time of its control group is enough for (``docker run --cpus``)."""
    bound = getattr(os, "sched_getaffinity", None)
    count = len(bound(0)) if bound else os.cpu_count() or 1
    times = [*_limits("cpu", "cpu.max")]
    quotas, periods = (_limits("cpu", f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    times += map(" ".join, zip(quotas, periods, strict=False))
    return max(1, min([count, *(math.ceil(one) for text in times if (one := _share(text)))]))


def memory() -> int:
    """Bytes of memory that there are, or that the control group of this process may take; of
    several ranks that a launcher started here, for each an even share of it."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    names = "memory.max", "memory.limit_in_bytes"
    most = [int(text) for name in names for text in _limits("memory", name) if text.isdigit()]
    return min([there, *most]) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _share(text: str) -> float | None:
    """Cores that ``"150000 100000"`` microseconds come to; None for no limit."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _limits(controller: str, name: str) -> Iterator[str]:
    """What the file ``name`` says in the control group of this process and in all around it: of
    version 2, which has one tree of groups, or of version 1, which has one for each controller."""
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
                except OSError:  # inside a container the name is another, and the top its own
                    continue
