"""How long numtok takes before it does anything, beside the libraries that it needs for that: its
help, and a training of one step. Medians of ten runs."""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

RUNS = 10
_NUMTOK = ["-c", "from numtok.cli.main import main; main()"]
_DATA = (
    ("gen", "arithmetic", "--operands", "2", "--samples", "300"),
    ("encode", "--scheme", "xval", "arithmetic"),
)
_TRAIN = "train arithmetic-xval --preset nano,layers=1,width=16,heads=2 --device cpu --steps 1"
#: By what is run, its words and the libraries beside which it is seen.
COMMANDS = {
    "numtok --help": ([*_NUMTOK, "--help"], "typer, rich"),
    "numtok train --help": ([*_NUMTOK, "train", "--help"], "typer, rich"),
    "numtok train --steps 1": ([*_NUMTOK, "-q", *_TRAIN.split(), "--name"], "torch, pyarrow"),
}


def seconds(arguments: list[str], folder: Path) -> float:
    """The wall time of one Python process run with ``arguments``."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # byte code is kept, as is usual
    started = time.perf_counter()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - started


def main() -> None:
    """Print the medians, and how far each is over that of the libraries."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for made in _DATA:
            seconds([*_NUMTOK, "-q", *made], folder)
        for told, (words, libraries) in COMMANDS.items():
            taken: dict[str, list[float]] = {"numtok": [], libraries: []}
            for run in range(RUNS + 1):
                last = [f"run-{run}"] if words[-1] == "--name" else []
                of_run = seconds([*words, *last], folder)
                beside = seconds(["-c", f"import {libraries}"], folder)
                if run:  # the first compiles byte code and warms the file cache
                    taken["numtok"].append(of_run)
                    taken[libraries].append(beside)
            whole, of_libraries = (median(times) for times in taken.values())
            over = whole - of_libraries
            print(f"{told:<23} {whole:.3f} s, {over:.3f} s over import {libraries}")


if __name__ == "__main__":
    main()
