"""Run numtok as a shell does: the fixture ``numtok``."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """Runs numtok in this process, in its own working folder."""

    capture: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str) -> Ran:
        from numtok.cli import main

        self.monkeypatch.setattr(sys, "argv", ["numtok", *arguments])
        self.capture.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main.main()
        out, err = self.capture.readouterr()
        assert isinstance(stopped.value.code, int)
        return Ran(stopped.value.code, out, err)


@pytest.fixture
def numtok(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """Provide a shell in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NUMTOK_STORE", "NUMTOK_THREADS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    yield Shell(capsys, monkeypatch)
