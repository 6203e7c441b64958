"""Coverage-guided fuzzing of readers with atheris (Linux on x86-64 only)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.trust.promise import Crashed, Promise

#: Inputs per case for each target of ``tests.trust.fuzz_targets``: some ten seconds each.
INPUTS = {
    "scanner": 30_000,
    "literals": 180_000,
    "json_rows": 180_000,
    "specs": 180_000,
    "stored": 360_000,
    "toml": 4_500,
    "pretrained": 300,
}
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def opened(folder: Path) -> Iterator[Path]:
    """Yield a folder for inputs."""
    yield folder


def fuzz(folder: Path, random: Random) -> int:
    """Fuzz all targets, and return the number of inputs."""
    case = folder / str(random.random())
    case.mkdir()
    seed = str(random.randrange(1, 1 << 31))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.trust.fuzz_targets", str(case), seed],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # libFuzzer writes to one, atheris to the other
        text=True,
        errors="replace",
    )
    if ran.returncode:
        broken = {path.parent.name: path.read_bytes() for path in case.glob("*/*-*")}
        error = ran.stdout.rpartition("Uncaught Python exception: ")[2].partition("\nSUMMARY")[0]
        what = f"{broken}: {error[-1000:]}"
        raise (AssertionError if "\nAssertionError" in error else Crashed)(what)
    units = re.findall(r"number_of_executed_units: (\d+)", ran.stdout)
    assert len(units) == len(INPUTS), ran.stdout[-500:]
    shutil.rmtree(case)
    return sum(map(int, units))


FUZZING = Promise(
    name="fuzzing",
    says="Readers raise an error of numtok, or read as slow readers do: the scanner, literals, "
    "rows of JSON, specs, manifests, stored JSON, TOML, `config.json` of pretrained folders.",
    how="atheris changes inputs, and keeps those that reach new code. Compiled kernels report no "
    "coverage; the slow readings with which they are compared guide their inputs.",
    aim=10_000_000,
    unit="inputs",
    world=opened,
    case=fuzz,
)
