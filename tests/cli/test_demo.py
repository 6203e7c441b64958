"""``numtok demo``: the commands it shows are the commands it runs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell import Shell


def numtok(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "numtok", *words],
        env=os.environ | {"COLUMNS": "80"},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_demo_ends_with_one_leaderboard_and_prints_commands(tmp_path: Path) -> None:
    done = numtok(tmp_path, "demo", "--steps", "2")
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"^\$ (numtok .*)$", done.stdout, re.MULTILINE)
    names = [shlex.split(command)[1] for command in commands]
    assert names == ["encode", "gen", *["encode", "train", "eval"] * 3, "compare"]
    assert done.stdout.count("\u2500\u2500\u2500\n") == 1  # one table
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert {"xval", "p1000", "digits", "mean", "linear"} <= {*rows}
    shown = [line for line in done.stdout.splitlines() if not line.startswith("$ ")]
    assert max(map(len, shown)) <= 80
    # A copied command finds what the demo made.
    for command in commands[1:4]:
        found = numtok(tmp_path, *shlex.split(command)[1:])
        assert found.returncode == 0 and "already " in found.stderr
    again = numtok(tmp_path, "demo", "--steps", "2")
    assert again.stdout == done.stdout


def test_the_demo_ends_with_the_exit_code_of_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMTOK_STORE", raising=False)
    (tmp_path / "artifacts").write_text("not a folder")
    ran = Shell(capfd, monkeypatch)("demo")
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert ran.err.startswith("numtok: cannot ")
