"""Time of commands that do hardly any work: medians of ten runs.

``python benchmarks/startup.py [CHECKOUT]`` runs each command of this checkout, alternating with
that of another checkout, for a table of before and after. The last rows are libraries that every
command imports.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import rich
from _shared import table  # type: ignore[import-not-found]

RUNS = 10
_HERE = Path(__file__).resolve().parents[1]
_SAMPLE = _HERE / "numtok" / "data" / "sample" / "era5-uk.jsonl"
_DATA = (
    "gen arithmetic --operands 2 --rows 300",
    "encode --scheme xval arithmetic",
    "train arithmetic-xval --preset nano,layers=1,width=16,heads=2 --device cpu --steps 1",
)
#: Commands with a new name per run, so that no artifact is reused.
COMMANDS = (
    "--help",
    "schemes",
    "explain -0.1435",
    "encode --scheme p1000 small.jsonl --name {name}",
    f"{_DATA[2]} --name {{name}}",
    "eval arithmetic-xval-nano arithmetic-xval --name {name}",
)
LIBRARIES = ("import typer, rich", "import typer, rich, numpy", "import typer, rich, numpy, torch")


def seconds(words: Sequence[str], folder: Path, checkout: Path, **more: str) -> float:
    """Return the wall time of a Python process."""
    # Keep byte code, as usual.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(checkout)} | more
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], check=True, cwd=folder, capture_output=True, env=environment
    )
    return time.perf_counter() - started


def numtok(command: str, run: int = 0) -> list[str]:
    """Return the arguments of a Python process that runs a command."""
    return ["-m", "numtok", *command.format(name=f"run-{run}").split()]


def main() -> None:
    """Print the medians."""
    checkouts = [_HERE, *map(Path, sys.argv[1:])]
    printed = table("", ["command"], [f"{checkout.name} s" for checkout in checkouts])
    with TemporaryDirectory() as name:
        folders = [Path(name, str(k)) for k in range(len(checkouts))]
        for folder, checkout in zip(folders, checkouts, strict=True):
            folder.mkdir()
            (folder / "small.jsonl").write_text(_SAMPLE.read_text("utf-8"), "utf-8")
            for command in _DATA:
                seconds(numtok(command), folder, checkout)
        pairs = list(zip(folders, checkouts, strict=True))
        for command in COMMANDS:
            taken = [
                [seconds(numtok(command, run), *each) for each in pairs] for run in range(RUNS + 1)
            ]
            shown = f"numtok {command.replace(' --name {name}', '')}"
            printed.add_row(shown, *medians(taken[1:]))  # the first run warms the file cache
        for libraries in LIBRARIES:
            taken = [[seconds(["-c", libraries], _HERE, _HERE)] for _ in range(RUNS + 1)]
            printed.add_row(libraries, *medians(taken[1:]))
        first = [
            seconds(numtok(COMMANDS[3], 99), *each, NUMBA_CACHE_DIR=f"{name}/kernels-{k}")
            for k, each in enumerate(pairs)
        ]
        printed.add_row("numtok encode, the first after installation", *medians([first]))
    rich.print(printed)


def medians(taken: Sequence[Sequence[float]]) -> list[str]:
    """Return the median of each column as text."""
    return [f"{median(column):.2f}" for column in zip(*taken, strict=True)]


if __name__ == "__main__":
    main()
