"""What engines share: units that are under way as futures, and whose fault a failure is."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from numtok.errors import NumtokError
from numtok.plugins import fault_of

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
