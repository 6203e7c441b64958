"""``numtok demo``: the commands it shows are the commands it runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell import Shell


def numtok(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "numtok", *words], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_demo_runs_the_chain_for_three_schemes_and_prints_commands(tmp_path: Path) -> None:
    done = numtok(tmp_path, "demo", "--steps", "2")
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"^\$ (numtok .*)$", done.stdout, re.MULTILINE)
    names = [shlex.split(command)[1] for command in commands]
    assert names == ["gen", *["encode", "train", "eval"] * 3, "compare"]
    assert all(scheme in done.stdout for scheme in ("xval", "p1000", "digits"))
    shown = [line for line in done.stdout.splitlines() if not line.startswith("$ ")]
    assert max(map(len, shown)) <= 80
    # Copied, each command finds what the demo made.
    found = numtok(tmp_path, *shlex.split(commands[1])[1:])
    assert found.returncode == 0 and "already " in found.stderr


def test_the_demo_ends_with_the_exit_code_of_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a process of its own, as each command is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMTOK_STORE", raising=False)
    (tmp_path / "artifacts").write_text("not a folder")
    ran = Shell(capfd, monkeypatch)("demo")
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert ran.err.startswith("numtok: cannot ")
