"""Wheel and sdist: both are built, and the wheel runs the demo in an empty folder."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from numtok import __version__

ROOT = Path(__file__).resolve().parents[1]


def run(folder: Path, *command: str | Path) -> str:
    """Run a command that sees nothing of this checkout, and return what it prints."""
    clean = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
    ran = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.integration
def test_the_wheel_runs_the_demo_in_an_empty_environment_and_folder(tmp_path: Path) -> None:
    dist, empty = tmp_path / "dist", tmp_path / "empty"
    empty.mkdir()
    run(ROOT, sys.executable, "-m", "hatchling", "build", "-d", dist)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "numtok").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert files == {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name}
    with tarfile.open(sdist) as packed:
        assert files <= {name.partition("/")[2] for name in packed.getnames()}

    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin/python"
    pip = sys.executable, "-m", "pip", "--python", python
    run(empty, *pip, "install", "-q", "--no-index", "--no-deps", wheel)
    # The locked packages are already installed for the tests: only numtok is new.
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib"))
    place = run(empty, python, "-c", "import numtok; print(numtok.__version__, numtok.__file__)")
    assert place == f"{__version__} {packages / 'numtok/__init__.py'}\n"
    shown = run(empty, environment / "bin/numtok", "demo", "--steps", "2")
    assert "p1000" in shown and "xval" in shown
