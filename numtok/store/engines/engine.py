"""Interface for engines, which run units of work, and selection of an engine by name.

``local`` is this machine. ``ray`` is the Ray cluster that contains this machine, and
``ray:HOST:PORT`` is the cluster whose head node listens at that address. Ray is only imported if it
is selected.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol, Self

from numtok.errors import UsageError
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import ClusterNode, Result, Unit, workers_for

LOCAL = "local"

#: Opens a temporary folder in the store, which is removed after the block.
Spool = Callable[[], AbstractContextManager[Path]]


class Engine(Protocol):
    """Protocol for engines, which run units of work in processes for the duration of a ``with``
    block.

    A unit must give the same result in every process, and it may run twice if its process dies.
    Units that are still running when the block ends are canceled.
    """

    @property
    def count(self) -> int:
        """Maximum number of units that run at the same time."""

    def start(self, soon: type, units: int) -> None:
        """Start processes early, while units are still being planned.

        ``soon`` is the class of the work that will be run, and ``units`` is the minimum number of
        units to expect.
        """

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in order of completion.

        The first exception in a unit is raised unchanged, and the remaining units are canceled.
        Raises StoreError if processes died and no retries are left.
        """

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Yield results as :meth:`run` does, but in the order of ``units``. ``units`` is consumed
        lazily, only a few units ahead of the results.

        If iterating over ``units`` raises an error, that error is raised after the results of the
        preceding units.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def engine_for(name: str, size: int, requested: int | None, least: int, spool: Spool) -> Engine:
    """Return the engine with the given name, with ``requested`` processes.

    If ``requested`` is None, a cluster uses one process per CPU, and :func:`workers_for` chooses
    the number of local processes from ``least`` and the amount of work, ``size``. Raises UsageError
    if the engine is not available.
    """
    if name == LOCAL:
        return Workers(workers_for(size, requested, least))
    return cluster(name, requested, spool)


def cluster(name: str, count: int | None, spool: Spool, cpus: int = 1, gpu: bool = False) -> Engine:
    """Return the engine for a Ray cluster, on which at most ``count`` units run at the same time.

    Each unit gets ``cpus`` CPUs and, if ``gpu`` is true, one GPU. Raises UsageError if Ray is not
    installed.
    """
    engine: Engine = _ray().RayTasks(_address(name), count, spool, cpus, gpu)
    return engine


@contextmanager
def connected(name: str) -> Iterator[Sequence[ClusterNode]]:
    """Connect to a cluster for the duration of the block, and yield its nodes.

    Engines that are used in the block share the connection. The local engine has no nodes.
    """
    if name == LOCAL:
        yield ()
        return
    tasks = _ray()
    with tasks.connection(_address(name)):
        yield tasks.nodes()


def _address(name: str) -> str | None:
    return name.partition(":")[2] or None


#: Read by Ray on import. By default, Ray retries failures for minutes, and out-of-memory errors
#: forever.
_OF_RAY = {"RAY_NUM_REDIS_GET_RETRIES": "2", "RAY_task_oom_retries": "3"}


def _ray() -> ModuleType:
    for name, value in _OF_RAY.items():
        os.environ.setdefault(name, value)
    try:
        from numtok.store.engines import ray
    except ImportError:
        raise UsageError('--engine ray needs Ray. Install it: pip install "numtok[ray]"') from None
    return ray
