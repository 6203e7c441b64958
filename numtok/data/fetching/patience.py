"""How often what comes over a network is asked for, and how long it is waited for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt, doubled before each other
PATIENCE = 30.0  # seconds without a byte
SILENCE = 5.0  # seconds of waiting before a note


def pauses(attempts: int) -> Iterator[float]:
    """The seconds before each of so many attempts.

    >>> list(pauses(4))
    [0.0, 1.0, 2.0, 4.0]
    """
    return (PAUSE * 2 ** (attempt - 1) if attempt else 0.0 for attempt in range(attempts))


@contextmanager
def noting_silence(note: Callable[[str], None], address: str) -> Iterator[None]:
    """Call ``note``, from another thread, if the block waits for ``address`` for long."""
    told = f"{address}: no answer yet, still trying. Check the network, or stop with Ctrl-C"
    timer = Timer(SILENCE, note, [told])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
