"""SIGINT and SIGTERM wait until a good moment: the step is ended and a checkpoint written."""

import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Within the block a first signal is only noted in ``received``; a second ends the process.

    :meth:`deliver` raises a noted one anew, for whoever handled it before, and so does the end of
    the block, unless that is an error: what failed is then the thing to tell.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        # Python delivers signals to the main thread, and lets no other one handle them.
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._note) for one in _SIGNALS}
        return self

    def deliver(self) -> None:
        """Raise the noted signal anew; returns where nobody minds it, as under ``nohup``."""
        number, self.received = self.received, None
        if number is not None:
            signal.signal(number, self._before.pop(number))
            signal.raise_signal(number)
            self._before[number] = signal.signal(number, self._note)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        if self.received is not None and kind is None:
            signal.raise_signal(self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        signal.signal(number, signal.SIG_DFL)
