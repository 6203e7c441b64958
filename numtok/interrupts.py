"""Blocks interrupts for code that does not survive them, or that handles them itself."""

import signal
import threading
from typing import Any


class BlockedInterrupts:
    """Context manager that blocks SIGINT in this thread.

    At the end it restores the signal mask of the thread, and installs Python's handler of SIGINT
    again, which a C library may have replaced. A blocked interrupt arrives then, unless another
    thread accepted it earlier.

    It is a class, so that the command line can recognize its methods and raise no exception within
    them (:mod:`numtok.cli._signals`), which would leave interrupts blocked.

    >>> with BlockedInterrupts():
    ...     blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    >>> signal.SIGINT in blocked
    True
    """

    def __enter__(self) -> None:
        self._mask: set[Any] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        except BaseException:  # the exception of an interrupt that arrived just before
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        # Not the handler from the start: a first interrupt, accepted by another thread, may have
        # set another one. None stands for a handler that was set outside Python.
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)  # allowed in the main thread only
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
