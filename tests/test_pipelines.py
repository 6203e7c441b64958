"""The scripts under pipelines/: they are shell, and they run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "pipelines").glob("*.sh"))
TABLES = [path for path in SCRIPTS if path.name != "scales.sh"]


def shell(command: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_pipeline_is_shell(script: Path, tmp_path: Path) -> None:
    assert shell(f"bash -n {script}", tmp_path).stderr == ""


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_every_scale_says_all_sizes(scale: str, tmp_path: Path) -> None:
    script = f'. {ROOT}/pipelines/scales.sh; set -u; echo "$PRESET $SAMPLES $BATCH $STEPS"'
    done = shell(f"{script}; echo $SEEDS $SHARES $JOBS $NUMTOK_THREADS", tmp_path, SCALE=scale)
    assert done.returncode == 0, done.stderr
    preset, *sizes = done.stdout.split()
    assert preset.partition(",")[0] in ("nano", "xval")
    assert all(int(size) >= 0 for size in sizes)


def test_an_unknown_scale_is_refused(tmp_path: Path) -> None:
    done = shell(f"{TABLES[0]}", tmp_path, SCALE="huge")
    assert done.returncode == 2
    assert done.stderr == "SCALE=huge is none of smoke, cpu, gpu, paper\n"


@pytest.mark.slow
@pytest.mark.parametrize("script", TABLES, ids=lambda path: path.name)
def test_a_pipeline_runs_and_goes_on_where_it_stood(script: Path, tmp_path: Path) -> None:
    small = {"SCALE": "smoke", "SCHEMES": "p1000 xval", "OPERANDS": "2", "DIGITS": "3"}
    first = shell(str(script), tmp_path, **small)
    assert first.returncode == 0, first.stderr
    assert "xval" in first.stdout and "printed" in first.stdout
    reports = sorted((tmp_path / "artifacts/report").rglob("report.json"))
    assert len(reports) == 4  # two schemes, two seeds
    times = [path.stat().st_mtime_ns for path in reports]
    again = shell(str(script), tmp_path, **small)
    assert again.stdout == first.stdout
    assert [path.stat().st_mtime_ns for path in reports] == times


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_there_are_as_many_expressions_as_a_scale_asks_for(scale: str, tmp_path: Path) -> None:
    script = f". {ROOT}/pipelines/scales.sh; numtok gen $TASK --samples $SAMPLES --split $SPLIT"
    for task in ("arithmetic,operands=2,low=1.00,high=9.99", "arithmetic,kind=product,digits=3"):
        done = shell(f"{script} --dry-run", tmp_path, SCALE=scale, TASK=task)
        assert done.returncode == 0, done.stderr
