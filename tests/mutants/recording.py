"""A plugin of pytest: which functions of numtok each test runs, itself or in a fork.

``python -m pytest -p tests.mutants.recording`` writes a line of JSON a test to
``$NUMTOK_MUTANTS_RECORD``: the test, its seconds, and each ``file:function`` that it ran. What a
process runs that was not forked is not seen, nor what a fixture did for an earlier test.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

PACKAGE = f"{Path(__file__).resolve().parents[2] / 'numtok'}{os.sep}"
_ROOT = len(PACKAGE) - len("numtok/")


class Recorder:
    """Notes the code of each call; a trace function that returns None sees no lines, so it is
    cheap."""

    def __init__(self, out: Path) -> None:
        self._out = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._pid = os.getpid()
        self._test = ""
        self._seen: set[int] = set()
        self._ran: set[str] = set()
        self._kept: list[object] = []  # so that no two codes have one id

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if id(code) in self._seen:
            return
        self._seen.add(id(code))
        self._kept.append(code)
        if code.co_filename.startswith(PACKAGE):
            function = code.co_qualname.split(".<locals>")[0]
            name = f"{code.co_filename[_ROOT:]}:{function}"
            self._ran.add(name)
            if os.getpid() != self._pid:  # a fork may end in any way, so it tells at once
                self._write([name], 0.0)

    def _write(self, ran: list[str], seconds: float) -> None:
        line = json.dumps({"test": self._test, "seconds": round(seconds, 3), "ran": ran})
        os.write(self._out, line.encode() + b"\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test = item.nodeid
        for kept in (self._seen, self._ran, self._kept):
            kept.clear()
        begin = time.monotonic()
        sys.settrace(self)
        threading.settrace(self)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self._write(sorted(self._ran), time.monotonic() - begin)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ["NUMTOK_MUTANTS_RECORD"])))
