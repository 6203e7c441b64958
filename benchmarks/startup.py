"""How long `numtok --help` takes beside importing typer and rich: medians of ten runs each."""

import subprocess
import sys
import time
from statistics import median

RUNS = 10
COMMANDS = {
    "numtok --help": ["-c", "from numtok.cli.main import main; main()", "--help"],
    "import typer, rich": ["-c", "import typer, rich"],
}


def seconds(arguments: list[str]) -> float:
    """The wall time of one Python process run with ``arguments``."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Print both medians and their difference."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        seconds(arguments)  # the first run compiles byte code and warms the file cache
    for _ in range(RUNS):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    with_numtok, without = (median(times) for times in taken.values())
    for name, times in taken.items():
        print(f"{name:<20} {median(times):.3f} s  (median of {RUNS})")
    print(f"{'difference':<20} {with_numtok - without:.3f} s")


if __name__ == "__main__":
    main()
