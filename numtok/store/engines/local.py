"""Engine that runs independent units of work on this machine, in this process or in spawned
workers.

Workers are spawned, never forked, and inherit no Python objects from this process, so a unit gives
the same result in every process. A worker exits when its parent ends. Only the parent handles
interrupts.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import wait as wait_for
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, Self

from numtok.errors import NumtokError, StoreError
from numtok.interrupts import BlockedInterrupts
from numtok.plugins import add_plugin_folders, plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.store.engines.workers import AGAIN, Result, Unit, completed, ordered, worked

_failure: NumtokError | None = None  # in a worker: the error of its start
_first: Any = None  # in a worker: the work it was started with
_work: tuple[bytes, Callable[[Any], Any] | None] = b"", None  # in a worker: pickled and unpickled


class Workers:
    """Engine that runs units of work in up to ``count`` processes, for the duration of a ``with``
    block.

    gpus
        CUDA device name of each process's GPU, which is device 0 within that process. If empty, all
        GPUs visible to this process are visible to each of them.
    died
        Advice in the error message for a process that died.
    """

    def __init__(self, count: int, gpus: Sequence[str] = (), died: str = AGAIN) -> None:
        self.count = count
        self.gpus = gpus
        self._died = died
        self._pool: ProcessPoolExecutor | None = None
        self._known = b""  # the work the processes were started with

    def start(self, soon: type, units: int) -> None:
        """Start processes early, while units are still being planned.

        ``soon`` is the class of the work that will be run, and ``units`` is the minimum number of
        units to expect. Starting takes about a second, mostly to import what this class needs.
        """
        if (few := min(self.count, units)) > 1:
            pool = self._processes(pickle.dumps(soon))
            for _ in range(few):
                with BlockedInterrupts(), suppress(BrokenProcessPool):  # reported by the work
                    pool.submit(_nothing)

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in order of completion.

        If there is only one worker or one unit, everything runs in this process. The first
        exception in a unit is raised, and the remaining units are canceled. Raises StoreError if a
        worker died (killed, or out of memory).
        """
        if min(self.count, len(units)) <= 1:
            yield from map(work, units)
            return
        submit = partial(self._submitted, self._sent(work))
        with self._reporting_death():
            for future in completed(submit, units, 2 * self.count):
                yield future.result()

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Yield results as :meth:`run` does, but in the order of ``units``. ``units`` is consumed
        lazily, only a few units ahead of the results.

        If iterating over ``units`` raises an error, that error is raised after the results of the
        preceding units.
        """
        waiting = iter(units)
        begun = list(islice(waiting, 2))
        if min(self.count, len(begun)) <= 1:
            yield from map(work, chain(begun, waiting))
            return
        submit = partial(self._submitted, self._sent(work))
        with self._reporting_death():
            for future in ordered(submit, chain(begun, waiting), 2 * self.count):
                yield future.result()

    @contextmanager
    def _reporting_death(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool:
            raise StoreError(
                f"a worker process died (killed, or out of memory). {self._died}"
            ) from None

    def _sent(self, work: Callable[[Any], Any]) -> bytes:
        """Return the pickled work to send with each unit; empty if workers were started with it.

        Large works are therefore sent to each worker only once.
        """
        pickled = pickle.dumps(work)
        if self._pool is None:
            self._processes(pickled)
        return b"" if pickled == self._known else pickled

    def _processes(self, first: bytes) -> ProcessPoolExecutor:
        # Interrupts stay allowed here: the helper process that Python starts allows them anyway.
        if self._pool is None:
            spawn, gpus = multiprocessing.get_context("spawn"), None
            if self.gpus:
                gpus = spawn.SimpleQueue()
                for gpu in self.gpus:
                    gpus.put(gpu)
            self._known = first
            self._pool = ProcessPoolExecutor(
                self.count,
                mp_context=spawn,
                initializer=_start,
                initargs=(plugin_folders(), first, gpus),
            )
        return self._pool

    def _submitted(self, work: bytes, unit: Any) -> Future[Any]:
        assert self._pool is not None
        with BlockedInterrupts():  # workers that start would print tracebacks of their imports
            return self._pool.submit(_do, work, unit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all running units."""
        if self._pool is None:
            return
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        for process in processes:
            process.terminate()
        # Wait for the thread that manages the pool: Python wakes it at exit, and prints an error if
        # it ends at that moment.
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool, self._known = None, b""
        for process in processes:  # in case the thread was not started yet
            process.join()


def _start(plugins: tuple[Path, ...], first: bytes, gpus: SimpleQueue[str] | None = None) -> None:
    global _failure, _first
    if gpus is not None:  # before anything imports torch
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus.get()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Workers are terminated without cleanup. A lock that a library (such as numcodecs) creates in a
    # spawned process then keeps its name, and Python warns of it at exit. With the fork method,
    # locks have no names.
    multiprocessing.set_start_method("fork", force=True)
    end_with_parent()
    try:
        add_plugin_folders(plugins)
        import_plugins_from_everywhere()
        _first = pickle.loads(first)  # imports what it needs
    except NumtokError as error:  # raised by the first unit; a failed start is only a dead worker
        _failure = error


def end_with_parent() -> None:
    """Make this spawned process exit as soon as its parent process has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _nothing() -> None:
    """Do nothing: a unit that only starts a worker."""


def _do(work: bytes, unit: Any) -> Any:
    global _work
    if _failure is not None:
        raise _failure
    if not work:
        return worked(_first, unit)
    # Keep the unpickled work, with everything it has read, such as a codec.
    if work != _work[0]:
        _work = work, worked(pickle.loads, work)
    assert _work[1] is not None
    return worked(_work[1], unit)
