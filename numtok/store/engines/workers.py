"""Number of processes of a command, their share of the machine, and scheduling of units."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, TypeVar

from numtok.config import threads
from numtok.errors import NumtokError, UsageError
from numtok.machine import cores
from numtok.plugins import fault_of

_PER_CORE = 4  # maximum processes; more only wait for each other and take memory


def workers_for(size: int, requested: int | None, least: int) -> int:
    """Return the number of processes for work of ``size``.

    The requested number, or else one per core. Work below ``least`` gets a single process, which
    finishes before others would have started.
    """
    if requested is not None:
        return check_processes("workers", requested)
    most = threads() or cores()  # raises for an invalid NUMTOK_THREADS
    return most if size > least else 1


def check_processes(option: str, count: int) -> int:
    """Return ``count``; raise UsageError if this machine is too small for this many processes."""
    available = cores()
    if count > _PER_CORE * available:
        raise UsageError(
            f"--{option} {count} is too many processes for {available} "
            f"core{'s' * (available != 1)}. Pass {_PER_CORE * available} at most"
        )
    return count


def threads_each(count: int) -> int:
    """Return the threads per process for ``count`` concurrent processes.

    ``NUMTOK_THREADS`` if set, or else an equal part of the cores.
    """
    return threads() or max(1, cores() // count)


def gpu_slots(count: int, available: int) -> list[str]:
    """Return CUDA's name of the GPU of each of ``count`` processes, which share them in turn.

    ``available`` is the number of GPUs that this process sees.

    >>> gpu_slots(3, 2)  # with CUDA_VISIBLE_DEVICES=4,6 these are 4, 6 and 4
    ['0', '1', '0']
    """
    outer = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(k) for k in range(available)] if outer is None else outer.split(",")[:available]
    return [names[k % available].strip() for k in range(count)]


class ClusterNode(NamedTuple):
    """A machine of a cluster, with the CPUs and GPUs that units may use."""

    name: str
    cpus: int
    gpus: int


Unit = TypeVar("Unit")
Result = TypeVar("Result")

AGAIN = "Run the same command again to resume; fewer --workers or --jobs need less memory"


def completed(
    submit: Callable[[Unit], Future[Any]], units: Sequence[Unit], most: int
) -> Iterator[Future[Any]]:
    """Yield the units as they finish; at most ``most`` run, so an error stops the run early."""
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
    """Yield the units in their order; the first one may still be running.

    At most ``most`` units are started ahead, so few results wait for the first. An error while
    taking a unit is raised after the preceding units.
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
    """Run ``work(unit)`` in a worker, and turn errors of plugins into PluginError.

    That must happen in the worker, because the parent only receives the text of a traceback.
    """
    try:
        return work(unit)
    except NumtokError:
        raise
    except Exception as error:
        if (fault := fault_of(error)) is not None:
            raise fault from None
        raise
