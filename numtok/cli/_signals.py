"""Turns SIGINT and SIGTERM into exceptions, raised only where no code swallows them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Code that an exception must not interrupt. An import may treat any exception as a missing optional
# dependency, and Python drops exceptions in its import locks: the signal would be lost. A worker
# interrupted while it starts prints a traceback, or makes others wait for it. Interrupts that stay
# blocked are lost to all processes started later.
_UNDISTURBED = {
    "importlib._bootstrap",
    "concurrent.futures.process",
    "threading.Thread.start",
    "numtok.interrupts",
}
# Modules that pass work to a thread and wait for it. An exception during the wait does no harm.
# Before or after it, a lock stays closed, so that ending the thread hangs, or work is orphaned.
_HANDING_OVER = {"concurrent.futures._base", "zarr.core.sync"}
_PAUSE = 0.01  # seconds before trying again
# A signal just before a wait is only handled after the wait, or at the next signal: this one.
_BEAT = 1.0  # seconds


class Terminated(BaseException):
    """Exception raised on SIGTERM. It is not a subclass of Exception, so ``except Exception`` does
    not catch it."""


_waiting: list[int] = []  # a signal whose exception is not raised yet


@contextmanager
def raising_at_signals() -> Iterator[None]:
    """Context manager that raises KeyboardInterrupt on SIGINT and Terminated on SIGTERM.

    Exceptions are raised in the main thread. A second signal terminates the process immediately.
    If SIGINT was already ignored, as under ``nohup``, it remains ignored. A signal that is still
    pending when the block ends is dropped.
    """
    handled = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handled.append(signal.SIGINT)
    before = {number: signal.signal(number, _stop) for number in handled}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _again)
    signal.setitimer(signal.ITIMER_REAL, _BEAT, _BEAT)
    try:
        yield
    finally:
        _waiting.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    # A second signal does not wait for the cleanup after the first one.
    signal.signal(number, signal.SIG_DFL)
    _raise_soon(number, frame)


def _again(number: int, frame: FrameType | None) -> None:
    if _waiting:
        _raise_soon(_waiting.pop(), frame)


def _raise_soon(number: int, frame: FrameType | None) -> None:
    if _is_undisturbed(frame):
        _waiting.append(number)
        signal.setitimer(signal.ITIMER_REAL, _PAUSE, _BEAT)
    elif number == signal.SIGINT:
        raise KeyboardInterrupt
    else:
        raise Terminated


def _is_undisturbed(frame: FrameType | None) -> bool:
    undisturbed = _UNDISTURBED
    if frame is not None and "threading.Condition.wait" not in _names(frame):
        undisturbed = _UNDISTURBED | _HANDING_OVER
    while frame is not None:
        if not undisturbed.isdisjoint(_names(frame)):
            return True
        frame = frame.f_back
    return False


def _names(frame: FrameType) -> set[str]:
    """Return the names of the running module and function."""
    module = str(frame.f_globals.get("__name__"))
    return {module, f"{module}.{frame.f_code.co_qualname}"}
