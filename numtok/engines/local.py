"""Run independent units on this machine: in this process, or in spawned workers.

Workers are spawned, never forked, and hold nothing but what they are given, so
a unit gives the same result whichever process does it. A worker that loses its
parent ends itself; interrupts are the parent's to handle.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, TypeVar

from numtok.errors import NumtokError, StoreError
from numtok.registry import add_plugin_folders, plugin_folders

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_work: Callable[[Any], Any] | None = None  # in a worker: what it does with a unit
_failure: NumtokError | None = None  # in a worker: why it could not start


def run_units(
    work: Callable[[Unit], Result], units: Sequence[Unit], workers: int
) -> Iterator[Result]:
    """Yield ``work(unit)`` for every unit, in the order they are finished.

    ``work`` is pickled once a worker. With one worker, or one unit, no process is started. The
    first exception of a unit is raised here and the rest is given up. Raises StoreError where a
    worker died (killed, or out of memory).
    """
    if min(workers, len(units)) <= 1:
        yield from map(work, units)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(units)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(pickle.dumps(work), plugin_folders()),
    )
    try:
        yield from _completed(pool, units, workers)
    except BrokenProcessPool:
        raise StoreError(
            "a worker process died (killed, or out of memory); run the same command again: what "
            "is finished is kept; fewer --workers or --jobs need less memory"
        ) from None
    finally:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _completed(pool: ProcessPoolExecutor, units: Sequence[Unit], workers: int) -> Iterator[Any]:
    """Keep a few units under way, so that an error stops the run early."""
    waiting = iter(units)
    running: set[Future[Any]] = set()
    while True:
        while len(running) < 2 * workers and (unit := next(waiting, None)) is not None:
            with _holding_interrupts():
                running.add(pool.submit(_do, unit))
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """A worker started meanwhile never gets one: it would print how far its imports had come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(work: bytes, plugins: tuple[Path, ...]) -> None:
    global _work, _failure
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    try:
        add_plugin_folders(plugins)
        _work = pickle.loads(work)  # only now: it may hold an object of a plugin's class
    except NumtokError as error:  # told by the first unit; a failing start only says "died"
        _failure = error


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _do(unit: Any) -> Any:
    if _failure is not None:
        raise _failure
    assert _work is not None
    return _work(unit)
