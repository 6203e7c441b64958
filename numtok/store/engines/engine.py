"""The contract of engines, and the selection of the engine for a command.

``local`` is this machine. ``ray`` is the Ray cluster that contains this machine, and
``ray:HOST:PORT`` the cluster whose head listens there. Ray is only imported if it is selected.
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
    """Processes that run units of work for the duration of a ``with`` block.

    A unit gives the same result in any process. It may run twice if its process died. Units that
    still run when the block ends are canceled.
    """

    @property
    def count(self) -> int:
        """Maximum number of units that run at the same time."""

    def start(self, soon: type, units: int) -> None:
        """Start processes for at least ``units`` units of the class ``soon`` during planning."""

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in order of completion.

        The first exception of a unit is raised unchanged, and the rest is canceled. Raises
        StoreError if processes died and there are no more retries.
        """

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Yield results like :meth:`run`, but in the order of the units, taking a few at a time.

        An error while taking a unit is raised after the results of the preceding units.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def engine_for(name: str, size: int, requested: int | None, least: int, spool: Spool) -> Engine:
    """Return the engine for work of ``size`` with ``requested`` processes.

    Without ``requested``, :func:`workers_for` decides by size; clusters use one process per CPU.
    Raises UsageError if the engine is not available.
    """
    if name == LOCAL:
        return Workers(workers_for(size, requested, least))
    return cluster(name, requested, spool)


def cluster(name: str, count: int | None, spool: Spool, cpus: int = 1, gpu: bool = False) -> Engine:
    """Return the engine of a cluster that runs at most ``count`` units at the same time.

    Each unit gets ``cpus`` CPUs and optionally a GPU. Raises UsageError if Ray is not installed.
    """
    engine: Engine = _ray().RayTasks(_address(name), count, spool, cpus, gpu)
    return engine


@contextmanager
def connected(name: str) -> Iterator[Sequence[ClusterNode]]:
    """Connect to the cluster for the block, with one shared connection; return its nodes.

    The local engine has no nodes.
    """
    if name == LOCAL:
        yield ()
        return
    tasks = _ray()
    with tasks.connection(_address(name)):
        yield tasks.nodes()


def _address(name: str) -> str | None:
    return name.partition(":")[2] or None


#: Read by Ray on import. By default it retries failures for minutes, and out-of-memory forever.
_OF_RAY = {"RAY_NUM_REDIS_GET_RETRIES": "2", "RAY_task_oom_retries": "3"}


def _ray() -> ModuleType:
    for name, value in _OF_RAY.items():
        os.environ.setdefault(name, value)
    try:
        from numtok.store.engines import ray
    except ImportError:
        raise UsageError('--engine ray needs Ray. Install it: pip install "numtok[ray]"') from None
    return ray
