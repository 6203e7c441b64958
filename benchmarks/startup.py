"""How long the help takes beside importing typer and rich: medians of ten runs."""

import os
import subprocess
import sys
import time
from statistics import median

RUNS = 10
_START = ["-c", "from numtok.cli.main import main; main()"]
COMMANDS = {
    "numtok --help": [*_START, "--help"],
    "numtok train --help": [*_START, "train", "--help"],
    "import typer, rich": ["-c", "import typer, rich"],
}


def seconds(arguments: list[str]) -> float:
    """The wall time of one Python process run with ``arguments``."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # byte code is kept, as is usual
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    return time.perf_counter() - started


def main() -> None:
    """Print the medians, and how far each is over that of the libraries."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        seconds(arguments)  # the first run compiles byte code and warms the file cache
    for _ in range(RUNS):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    libraries = median(taken["import typer, rich"])
    for name, times in taken.items():
        over = median(times) - libraries
        print(f"{name:<20} {median(times):.3f} s, {over:.3f} s over the libraries")


if __name__ == "__main__":
    main()
