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
from numtok.plugins import add_plugin_folders, plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.store.engines.workers import AGAIN, Result, Unit, completed, ordered, worked

_failure: NumtokError | None = None  # in a worker: why it could not start
_first: Any = None  # in a worker: what it was started with
_work: tuple[bytes, Callable[[Any], Any] | None] = b"", None  # in a worker: pickled, and as it is


class Workers:
    """Up to ``count`` processes, for as long as a ``with`` block lasts.

    gpus
        For each process what CUDA calls the one GPU that it sees, as device 0; empty: all that this
        one sees.
    died
        What to do when one died, as a user is told.
    """

    def __init__(self, count: int, gpus: Sequence[str] = (), died: str = AGAIN) -> None:
        self.count = count
        self.gpus = gpus
        self._died = died
        self._pool: ProcessPoolExecutor | None = None
        self._known = b""  # the work that they were started with

    def start(self, soon: type, units: int) -> None:
        """Start as many as at least ``units`` units will need, while these are still planned.

        That takes a second, most of it to import what work of the class ``soon`` needs.
        """
        if (few := min(self.count, units)) > 1:
            pool = self._processes(pickle.dumps(soon))
            for _ in range(few):
                with _holding_interrupts(), suppress(BrokenProcessPool):  # told by the work
                    pool.submit(_nothing)

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in the order they are finished.

        With one worker, or one unit, this process does them. The first exception of a unit is
        raised here and the rest is given up. Raises StoreError where a worker died (killed, or
        out of memory).
        """
        if min(self.count, len(units)) <= 1:
            yield from map(work, units)
            return
        submit = partial(self._submitted, self._sent(work))
        with self._telling_of_death():
            for future in completed(submit, units, 2 * self.count):
                yield future.result()

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """As :meth:`run`, in the order of the units, of which a few at a time are taken. What fails
        where one is taken is raised when those before it are done."""
        waiting = iter(units)
        begun = list(islice(waiting, 2))
        if min(self.count, len(begun)) <= 1:
            yield from map(work, chain(begun, waiting))
            return
        submit = partial(self._submitted, self._sent(work))
        with self._telling_of_death():
            for future in ordered(submit, chain(begun, waiting), 2 * self.count):
                yield future.result()

    @contextmanager
    def _telling_of_death(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool:
            raise StoreError(
                f"a worker process died (killed, or out of memory); {self._died}"
            ) from None

    def _sent(self, work: Callable[[Any], Any]) -> bytes:
        """What goes with each unit: nothing where workers were started with the work, so that a
        large one goes to each of them once."""
        pickled = pickle.dumps(work)
        if self._pool is None:
            self._processes(pickled)
        return b"" if pickled == self._known else pickled

    def _processes(self, first: bytes) -> ProcessPoolExecutor:
        # Made with interrupts allowed: what Python starts with the first one allows them again.
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
        with _holding_interrupts():
            return self._pool.submit(_do, work, unit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever is still under way is given up."""
        if self._pool is None:
            return
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        for process in processes:
            process.terminate()
        # Waits for the thread that manages the pool: Python wakes it at its own exit, and complains
        # where it ends at that very moment.
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool, self._known = None, b""
        for process in processes:  # where the thread was not started yet
            process.join()


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """A worker started meanwhile never gets one: it would print how far its imports had come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(plugins: tuple[Path, ...], first: bytes, gpus: "SimpleQueue[str] | None" = None) -> None:
    global _failure, _first
    if gpus is not None:  # before anything imports torch
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus.get()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A worker is ended, it does not tidy up. A lock that a library makes in a spawned process
    # (numcodecs does, to read a field) then keeps its name, and Python warns of it at the exit.
    # In a process that would fork, locks have no name from the start.
    multiprocessing.set_start_method("fork", force=True)
    end_with_parent()
    try:
        add_plugin_folders(plugins)
        import_plugins_from_everywhere()
        _first = pickle.loads(first)  # imports what it needs
    except NumtokError as error:  # told by the first unit; a failing start only says "died"
        _failure = error


def end_with_parent() -> None:
    """End this process, which another one spawned, as soon as that one has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _nothing() -> None:
    """What a worker is started with before there is anything to do."""


def _do(work: bytes, unit: Any) -> Any:
    global _work
    if _failure is not None:
        raise _failure
    if not work:
        return worked(_first, unit)
    # As long as it is the same work, it keeps what it has read, such as a codec.
    if work != _work[0]:
        _work = work, worked(pickle.loads, work)
    assert _work[1] is not None
    return worked(_work[1], unit)
