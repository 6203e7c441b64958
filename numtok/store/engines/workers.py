"""Number of worker processes, their share of the machine, and the scheduling of units of work."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, TypeVar

from numtok.config import threads
from numtok.errors import NumtokError, UsageError
from numtok.machine import cores
from numtok.names import counted
from numtok.plugins import fault_of

_PER_CORE = 4  # maximum processes; more only wait for each other and take memory


def workers_for(size: int, requested: int | None, least: int) -> int:
    """Return the number of processes for work of a given size.

    This is ``requested`` if given. Otherwise, work whose ``size`` is at most ``least`` gets a
    single process, because it would finish before further processes had started. Larger work gets
    ``NUMTOK_THREADS`` processes or, if that is not set, one per core.
    """
    if requested is not None:
        return check_processes("workers", requested)
    most = threads() or cores()  # raises for an invalid NUMTOK_THREADS
    return most if size > least else 1


def check_processes(option: str, count: int) -> int:
    """Return ``count``, the number of processes set by an option. Raises UsageError if this machine
    has too few cores."""
    available = cores()
    if count > _PER_CORE * available:
        raise UsageError(
            f"--{option} {count} is too many processes for "
            f"{counted(available, 'core')}. Pass {_PER_CORE * available} at most"
        )
    return count


def threads_each(count: int) -> int:
    """Return the number of threads for each of ``count`` concurrent processes: ``NUMTOK_THREADS``
    if set, otherwise an equal share of the cores."""
    return threads() or max(1, cores() // count)


def gpu_slots(count: int, available: int) -> list[str]:
    """Return the CUDA device name of the GPU for each of ``count`` processes. GPUs are assigned in
    turn.

    ``available`` is the number of GPUs that are visible to this process.

    >>> gpu_slots(3, 2)  # with CUDA_VISIBLE_DEVICES=4,6 these are 4, 6 and 4
    ['0', '1', '0']
    """
    outer = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(k) for k in range(available)] if outer is None else outer.split(",")[:available]
    return [names[k % available].strip() for k in range(count)]


class ClusterNode(NamedTuple):
    """Machine in a cluster, with the number of CPUs and GPUs that units may use."""

    name: str
    cpus: int
    gpus: int


Unit = TypeVar("Unit")
Result = TypeVar("Result")

AGAIN = "Run the same command again to resume; fewer --workers or --jobs need less memory"


def completed(
    submit: Callable[[Unit], Future[Any]], units: Sequence[Unit], most: int
) -> Iterator[Future[Any]]:
    """Yield the futures of all units in order of completion. ``submit`` starts a unit.

    At most ``most`` units run at the same time, so that an error stops the run early.
    """
    waiting = iter(units)
    running: set[Future[Any]] = set()
    while True:
        while len(running) < most and (unit := next(waiting, None)) is not None:
            running.add(submit(unit))
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        yield from done


def ordered(
    submit: Callable[[Unit], Future[Any]], units: Iterable[Unit], most: int
) -> Iterator[Future[Any]]:
    """Yield the futures of all units in the order of the units. ``submit`` starts a unit.

    A yielded future may still be running. At most ``most`` units are started ahead of the consumer,
    so that few results wait in memory. If iterating over ``units`` raises an error, that error is
    raised after the preceding units.
    """
    waiting = iter(units)
    running: deque[Future[Any]] = deque()
    failed: Exception | None = None
    more = True
    while more or running:
        while more and len(running) < most:
            try:
                unit = next(waiting)
            except StopIteration:
                more = False
            except Exception as error:
                more, failed = False, error
            else:
                running.append(submit(unit))
        if running:
            yield running.popleft()
    if failed is not None:
        raise failed


def worked(work: Callable[[Unit], Result], unit: Unit) -> Result:
    """Call ``work(unit)`` and return the result. Errors in plugin code are raised as PluginError.

    This must happen in the worker process, because the parent only receives the text of a
    traceback.
    """
    try:
        return work(unit)
    except NumtokError:
        raise
    except Exception as error:
        if (fault := fault_of(error)) is not None:
            raise fault from None
        raise
