"""How many processes a command uses, what each has of the machine, and units under way."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, TypeVar

from numtok.config import threads
from numtok.errors import NumtokError, UsageError
from numtok.machine import cores
from numtok.plugins import fault_of

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


Unit = TypeVar("Unit")
Result = TypeVar("Result")

AGAIN = (
    "run the same command again: what is finished is kept; fewer --workers or --jobs need less "
    "memory"
)


def completed(
    submit: Callable[[Unit], Future[Any]], units: Sequence[Unit], most: int
) -> Iterator[Future[Any]]:
    """The units as they are finished; at most ``most`` are under way, so that an error stops the
    run early."""
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
    """The units in their order, the first of which may be under way still; more are begun only when
    that is done, so that few results wait for it. What fails where one is taken is raised when
    those before it are done."""
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
    """``work(unit)`` in a process of its own, which tells that a plugin is at fault: of a traceback
    the parent is given the text alone."""
    try:
        return work(unit)
    except NumtokError:
        raise
    except Exception as error:
        if (fault := fault_of(error)) is not None:
            raise fault from None
        raise
