"""Which engine runs the units of a command, and what every engine promises.

``local`` is this machine. ``ray`` is the Ray cluster that this machine is a node of, and
``ray:HOST:PORT`` the one whose head listens there. Only who asks for Ray loads it.
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

#: Opens a folder in the store that is gone after the block.
Spool = Callable[[], AbstractContextManager[Path]]


class Engine(Protocol):
    """Processes that do units of work, for as long as a ``with`` block lasts.

    A unit gives the same result whichever process does it, and may be done twice: where the process
    died that did it. What is still under way when the block ends is given up.
    """

    @property
    def count(self) -> int:
        """How many units are done side by side, at most."""

    def start(self, soon: type, units: int) -> None:
        """Start what at least ``units`` units of the class ``soon`` will need, while these are
        still planned."""

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in the order they are finished.

        The first exception of a unit is raised here as it was raised there, and the rest is given
        up. Raises StoreError where processes died and no more are tried.
        """

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """As :meth:`run`, in the order of the units, of which a few at a time are taken. What fails
        where one is taken is raised when those before it are done."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def engine_for(name: str, size: int, asked: int | None, least: int, spool: Spool) -> Engine:
    """The engine of that name for work of ``size``, with as many processes as ``asked`` for.

    Else the size decides, as :func:`workers_for` says, or there is one for each CPU of the cluster.
    Raises UsageError where there is no such engine here.
    """
    if name == LOCAL:
        return Workers(workers_for(size, asked, least))
    return cluster(name, asked, spool)


def cluster(name: str, count: int | None, spool: Spool, cpus: int = 1, gpu: bool = False) -> Engine:
    """The cluster of that name, which does at most ``count`` units side by side, each with so many
    CPUs and perhaps a GPU of its own; UsageError where Ray is not installed."""
    made: Engine = _ray().RayTasks(_address(name), count, spool, cpus, gpu)
    return made


@contextmanager
def connected(name: str) -> Iterator[Sequence[ClusterNode]]:
    """The nodes of the cluster, none of the local engine. In the block all that runs there shares
    one connection."""
    if name == LOCAL:
        yield ()
        return
    tasks = _ray()
    with tasks.connection(_address(name)):
        yield tasks.nodes()


def _address(name: str) -> str | None:
    return name.partition(":")[2] or None


#: Read by Ray when it is loaded: what fails it would try for minutes, or, where memory is out, for
#: ever.
_OF_RAY = {"RAY_NUM_REDIS_GET_RETRIES": "2", "RAY_task_oom_retries": "3"}


def _ray() -> ModuleType:
    for name, value in _OF_RAY.items():
        os.environ.setdefault(name, value)
    try:
        from numtok.store.engines import ray
    except ImportError:
        raise UsageError('--engine ray needs Ray; `pip install "numtok[ray]"` brings it') from None
    return ray
