"""Coverage-guided fuzzing of readers with atheris (Linux on x86-64 only)."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.trust.promise import Crashed, Promise

#: Inputs per case for each target of ``tests.trust.fuzz_targets``: a few seconds each.
_INPUTS = {
    "scanner": 10_000,
    "literals": 60_000,
    "json_rows": 60_000,
    "specs": 60_000,
    "stored": 120_000,
    "toml": 1_500,
    "pretrained": 100,
}
_FLAGS = (
    *("-print_final_stats=1", "-verbosity=0", "-timeout=120", "-rss_limit_mb=4096"),
    "-max_len=2000",
)
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def opened(folder: Path) -> Iterator[Path]:
    """Yield a folder for inputs."""
    yield folder


def fuzz(folder: Path, random: Random) -> int:
    """Fuzz each target in its own process."""
    return sum(_fuzz(folder / str(random.random()), name, random) for name in _INPUTS)


def _fuzz(folder: Path, target: str, random: Random) -> int:
    (folder / "corpus").mkdir(parents=True)
    seed = random.randrange(1, 1 << 31)
    flags = [*_FLAGS, f"-runs={_INPUTS[target]}", f"-seed={seed}", f"-artifact_prefix={folder}/"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.trust.fuzz_targets", target, *flags, f"{folder}/corpus"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        errors="replace",
    )
    if ran.returncode:
        broken = [path.read_bytes() for path in folder.glob("*-*")]
        lines = [
            line for line in ran.stderr.splitlines() if not line.startswith(("#", "INFO", "="))
        ]
        what = f"{target}: {broken}: {' | '.join(lines)[-1000:]}"
        raise (AssertionError if "AssertionError" in ran.stderr else Crashed)(what)
    units = re.search(r"number_of_executed_units: (\d+)", ran.stderr)
    assert units, ran.stderr[-500:]
    return int(units[1])


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
