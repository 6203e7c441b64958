"""How long a sample can be: memory and time of training on one row, by scheme.

    python benchmarks/long.py download.nc                       # any place that fetch era5 knows
    python benchmarks/long.py download.nc --device cuda --limit 70

Rows of `numtok gen temperature`, hourly over one day, with twice as many stations each time, until
a step of one row takes more than ``--limit`` GiB or ``--seconds``; then half-way between the last
that went and the first that did not, a few times. Each is trained for two steps, in a process of
its own, as it is and with ``--recompute``; memory is that of the whole process (of the GPU), so the
first row shows what a model without a row takes. The longest that goes is marked.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

SCHEMES = ("p10", "p1000", "b1999", "fp15", "xval")
STEPS = 2
_NO_MEMORY = (5, -9)  # training failed; killed by the system


class OutOfMemory(Exception):
    """A command had not enough of it."""


def numtok(store: Path, *arguments: str) -> dict[str, Any]:
    """What a command says about what it made."""
    command = [sys.executable, "-m", "numtok", "--quiet", *arguments, "--json"]
    environment = os.environ | {"NUMTOK_STORE": str(store)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode in _NO_MEMORY:
        raise OutOfMemory
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure every scheme and print the table."""
    parser = argparse.ArgumentParser(description="Measure how long a sample can be.")
    parser.add_argument("place", nargs="?", help="of `numtok fetch era5 --from`")
    parser.add_argument("--schemes", nargs="+", default=SCHEMES)
    parser.add_argument("--preset", default="xval,context=0")
    parser.add_argument("--stations", type=int, default=15, help="of the shortest row")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=float, default=20, help="GiB")
    parser.add_argument("--bisections", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120, help="of a step")
    options = parser.parse_args()
    if options.place is None:  # as `just bench` runs it
        print("needs a field: python benchmarks/long.py era5.nc; takes hours")
        return
    columns = ("scheme", "stations", "numbers", "tokens", "recompute", "GiB", "s a step")
    table = Table(title=f"{options.preset}, one row")
    for column in columns:
        table.add_column(column, justify="left" if column == "scheme" else "right")
    with TemporaryDirectory() as folder:
        store = Path(folder)
        field = numtok(store, "fetch", "era5", "--from", options.place, "--name", "field")
        cells = field["counts"]["latitudes"] * field["counts"]["longitudes"]
        for scheme in options.schemes:
            for recompute in (False, True):
                for row in lengths(store, scheme, recompute, cells, options):
                    table.add_row(*row)
    Console().print(table)


class Measured(NamedTuple):
    """What training on rows of so many stations takes, GiB and seconds a step; None where the step
    was not possible at all."""

    stations: int
    numbers: float
    tokens: float
    memory: float | None
    seconds: float | None

    def fits(self, options: argparse.Namespace) -> bool:
        """Whether that is within the limits."""
        if self.memory is None or self.seconds is None:
            return False
        return bool(self.memory <= options.limit and self.seconds <= options.seconds)


def lengths(
    store: Path, scheme: str, recompute: bool, cells: int, options: argparse.Namespace
) -> list[tuple[str, ...]]:
    """Rows of the table, the shortest sample first."""
    found: dict[int, Measured] = {}

    def fits(stations: int) -> bool:
        found[stations] = measured(store, scheme, recompute, stations, options)
        print(scheme, recompute, *found[stations], file=sys.stderr)
        return found[stations].fits(options)

    least, most = 0, min(options.stations, cells)
    while fits(most):
        if most == cells:  # no row has more
            break
        least, most = most, min(2 * most, cells)
    else:
        for _ in range(options.bisections):
            middle = (least + most) // 2
            if middle > least:
                least, most = (middle, most) if fits(middle) else (least, middle)
    longest = max((one.stations for one in found.values() if one.fits(options)), default=None)
    return [
        (
            *(scheme, f"{one.stations:,}{' *' if one.stations == longest else ''}"),
            *(f"{one.numbers:,.0f}", f"{one.tokens:,.0f}", "yes" if recompute else ""),
            *("-" if one.memory is None else f"{one.memory:.2f}",),
            *("-" if one.seconds is None else f"{one.seconds:.1f}",),
        )
        for one in sorted(found.values())
    ]


def measured(
    store: Path, scheme: str, recompute: bool, stations: int, options: argparse.Namespace
) -> Measured:
    """Rows of so many stations made, encoded and trained on."""
    name = f"stations-{stations}"
    settings = ["--stations", f"{stations}..{stations}", "--days", "1..1", "--every", "1"]
    split = ["--samples", "40", "--split", "validation=0.1", "--name", name]
    numtok(store, "gen", "temperature", "--from", "field", *settings, *split)
    encoded = numtok(store, "encode", name, "--scheme", scheme)
    counts = encoded["counts"]
    sizes = stations, counts["numbers"] / counts["rows"], counts["tokens"] / counts["rows"]
    # Another seed, because how memory is spent makes no other model: it would be found.
    more = ["--recompute", "--seed", "1"] if recompute else []
    more += ["--device", options.device, "--batch", "1", "--steps", str(STEPS)]
    try:
        model = numtok(store, "train", encoded["ref"], "--preset", options.preset, *more)
    except OutOfMemory:
        return Measured(*sizes, None, None)
    timing = model["timing"]
    return Measured(*sizes, timing["peak_memory"] / 2**30, timing["seconds"] / STEPS)


if __name__ == "__main__":
    main()
