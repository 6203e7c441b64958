"""How long a sample can be: memory and time of training on one row, by scheme.

    python benchmarks/long.py download.nc                       # any place that fetch era5 knows
    python benchmarks/long.py download.nc --device cuda --limit 70

Rows of `numtok gen temperature`, hourly over one day, with twice as many stations each time, until
a step of one row takes more than ``--limit`` GB or ``--seconds``. Each is trained for two steps, in
a process of its own, as it is and with ``--recompute``; memory is that of the whole process (of
the GPU), so the first row shows what a model without a row takes.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

SCHEMES = ("p10", "p1000", "b1999", "fp15", "xval")
STEPS = 2


def numtok(store: Path, *arguments: str) -> dict[str, Any]:
    """What a command says about what it made."""
    command = [sys.executable, "-m", "numtok", "--quiet", *arguments, "--json"]
    environment = os.environ | {"NUMTOK_STORE": str(store)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure every scheme and print the table."""
    parser = argparse.ArgumentParser(description="Measure how long a sample can be.")
    parser.add_argument("place", help="of `numtok fetch era5 --from`")
    parser.add_argument("--schemes", nargs="+", default=SCHEMES)
    parser.add_argument("--preset", default="xval,context=0")
    parser.add_argument("--stations", type=int, default=15, help="of the shortest row")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=float, default=20, help="GB")
    parser.add_argument("--seconds", type=float, default=120, help="of a step")
    options = parser.parse_args()
    columns = ("scheme", "stations", "numbers", "tokens", "recompute", "GB", "s a step")
    table = Table(title=f"{options.preset}, one row")
    for column in columns:
        table.add_column(column, justify="left" if column == "scheme" else "right")
    with TemporaryDirectory() as folder:
        store = Path(folder)
        numtok(store, "fetch", "era5", "--from", options.place, "--name", "field")
        for scheme in options.schemes:
            for recompute in (False, True):
                for row in lengths(store, scheme, recompute, options):
                    table.add_row(*row)
    Console().print(table)


def lengths(
    store: Path, scheme: str, recompute: bool, options: argparse.Namespace
) -> list[tuple[str, ...]]:
    """Rows of the table, the shortest sample first."""
    found: list[tuple[str, ...]] = []
    stations = options.stations
    while True:
        name = f"stations-{stations}"
        settings = ["--stations", f"{stations}..{stations}", "--days", "1..1", "--every", "1"]
        split = ["--samples", "40", "--split", "validation=0.1", "--name", name]
        numtok(store, "gen", "temperature", "--from", "field", *settings, *split)
        encoded = numtok(store, "encode", name, "--scheme", scheme)
        # Another seed, because how memory is spent makes no other model: it would be found.
        more = ["--recompute", "--seed", "1"] if recompute else []
        more += ["--device", options.device, "--batch", "1", "--steps", str(STEPS)]
        model = numtok(store, "train", encoded["ref"], "--preset", options.preset, *more)
        counts, timing = encoded["counts"], model["timing"]
        memory = timing["peak_memory"] / 1e9
        took = timing["seconds"] / STEPS
        found.append(
            (
                *(scheme, f"{stations:,}", f"{counts['numbers'] / counts['rows']:,.0f}"),
                *(f"{counts['tokens'] / counts['rows']:,.0f}", "yes" if recompute else ""),
                *(f"{memory:.2f}", f"{took:.1f}"),
            )
        )
        print(*found[-1], file=sys.stderr)
        if memory > options.limit / 2 or took > options.seconds / 4:  # the next is twice as long
            return found
        stations *= 2


if __name__ == "__main__":
    main()
