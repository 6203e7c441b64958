"""Blocks interrupts for code that does not survive them, or that handles them itself."""

import signal
import threading
from typing import Any


class BlockedInterrupts:
    """Context manager that blocks SIGINT in this thread.

    At the end it restores the signal mask of the thread, and the handler of SIGINT, which a library
    may have replaced. A blocked interrupt arrives then, unless another thread accepted it earlier.
    It is a class because the command line raises no exception while a method of this module runs
    (:mod:`numtok.cli._signals`): an exception within a generator's ``finally`` would leave
    interrupts blocked.

    >>> with BlockedInterrupts():
    ...     blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    >>> signal.SIGINT in blocked
    True
    """

    def __enter__(self) -> None:
        self._handler = signal.getsignal(signal.SIGINT)
        self._mask: set[Any] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        except BaseException:  # the exception of an interrupt that arrived just before
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        # Only the main thread can set a handler. None stands for one that was set outside Python.
        if threading.current_thread() is threading.main_thread() and self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
