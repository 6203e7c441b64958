"""Prepares what is needed next while what came before is worked on."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetched(make: Callable[[int], T], first: int, end: int, workers: int) -> Iterator[T]:
    """``make(first)``, ..., ``make(end - 1)``, in order, by so many threads; 0: when asked for.

    ``make`` is a pure function of its index, so the threads change nothing but the time.
    """
    if workers == 0:
        yield from map(make, range(first, end))
        return
    with ThreadPoolExecutor(workers, "prefetch") as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for index in range(first, end):
                waiting.append(pool.submit(make, index))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
