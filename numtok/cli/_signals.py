"""SIGINT and SIGTERM end a command by an exception, raised where nothing can swallow it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# What an exception in the midst of these would do. A module that is being imported may take any
# for an optional dependency that is not there, and Python drops those of its import locks: the
# signal would be lost. A worker whose start is broken off prints a traceback, or is waited for.
_UNDISTURBED = {"importlib._bootstrap", "concurrent.futures.process", "threading.Thread.start"}
# These hand work to a thread and wait for it. In a wait an exception does no harm; before and after
# one it leaves a lock closed, and who ends the thread waits for ever, or work that nobody awaits.
_HANDING_OVER = {"concurrent.futures._base", "zarr.core.sync"}
_PAUSE = 0.01  # seconds until the next look whether they are over
# Python sees a signal that comes on the brink of a wait when the wait is over, or at the next one.
_BEAT = 1.0  # seconds


class Terminated(BaseException):
    """SIGTERM came. Not an Exception: nothing on the way out may take it for a failure."""


_waiting: list[int] = []  # a signal whose exception is not raised yet


@contextmanager
def raising_at_signals() -> Iterator[None]:
    """In the block a first SIGINT raises KeyboardInterrupt and a first SIGTERM Terminated, in the
    main thread; a second one ends the process at once.

    SIGINT stays ignored where it is, as under ``nohup``. A signal that still waits when the block
    ends comes too late.
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
    # A second signal does not wait for what the first one made us tidy up.
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
    """Of the module that runs, and of the function."""
    module = str(frame.f_globals.get("__name__"))
    return {module, f"{module}.{frame.f_code.co_qualname}"}
