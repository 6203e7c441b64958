"""How many processes a command uses, and what each has of the machine."""

import os
from typing import NamedTuple

from numtok.config import threads
from numtok.errors import UsageError
from numtok.machine import cores

_PER_CORE = 4  # processes: more of them only wait for each other, and each takes its memory


def workers_for(size: int, asked: int | None, least: int) -> int:
    """As asked for; else one a core, but none for less than ``least``, which one process is done
    with before others have started."""
    if asked is not None:
        return check_processes("workers", asked)
    most = threads() or cores()  # also says what is wrong with NUMTOK_THREADS
    return most if size > least else 1


def check_processes(option: str, count: int) -> int:
    """Return ``count``. Raise UsageError if this machine is too small for so many processes."""
    there = cores()
    if count > _PER_CORE * there:
        raise UsageError(
            f"--{option} {count} is too many processes for {there} core{'s' * (there != 1)}. "
            f"Pass {_PER_CORE * there} at most"
        )
    return count


def threads_each(count: int) -> int:
    """Of so many processes that compute side by side: their part of the cores, at most as many as
    ``NUMTOK_THREADS`` gives to each."""
    return threads() or max(1, cores() // count)


def gpu_slots(count: int, there: int) -> list[str]:
    """What CUDA calls the GPU of each of ``count`` processes, of the ``there`` that this one sees;
    more processes share them in turn.

    >>> gpu_slots(3, 2)  # with CUDA_VISIBLE_DEVICES=4,6 these are 4, 6 and 4
    ['0', '1', '0']
    """
    outer = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(k) for k in range(there)] if outer is None else outer.split(",")[:there]
    return [names[k % there].strip() for k in range(count)]


class ClusterNode(NamedTuple):
    """A machine of a cluster, and what of it units may use."""

    name: str
    cpus: int
    gpus: int
