"""Longest possible sample: memory and time of training on one row, by scheme.

    python benchmarks/long.py download.nc               # any value of `numtok fetch era5 --from`
    python benchmarks/long.py download.nc --device cuda --limit 70

Rows are those of `numtok gen temperature`, hourly over one day. The first two have ``--stations``
and twice that number. The next number of stations is estimated from both to just stay within
``--limit`` GiB and ``--seconds`` per step, with linear growth of memory and a power law for time.
If the row is too long, or far below both limits, it is estimated again from the last two,
``--tries`` times in total.

Each row is trained for two steps in a separate process, with and without ``--recompute``. Memory is
that of the whole process (or of the GPU). The longest row within the limits is marked.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

SCHEMES = ("p10", "p1000", "b1999", "fp15", "xval")
STEPS = 2
NEAR, AIM = 0.85, 0.95  # fractions of a limit: near enough to stop, and aim of the next row
_NO_MEMORY = (5, -9)  # exit codes: training failed; killed by the system


class OutOfMemory(Exception):
    """A command ran out of memory."""


def numtok(store: Path, *arguments: str) -> dict[str, Any]:
    """Run a command and return its JSON output."""
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
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120, help="of a step")
    options = parser.parse_args()
    if options.place is None:  # as in `just bench`
        print("needs a field: python benchmarks/long.py era5.nc; takes hours")
        return
    columns = ("stations", "numbers", "tokens", "recompute", "GiB", "s a step")
    shown = table(f"{options.preset}, one row", ("scheme",), columns)
    with TemporaryDirectory() as folder:
        store = Path(folder)
        field = numtok(store, "fetch", "era5", "--from", options.place, "--name", "field")
        cells = field["counts"]["latitudes"] * field["counts"]["longitudes"]
        for scheme in options.schemes:
            for recompute in (False, True):
                for row in lengths(store, scheme, recompute, cells, options):
                    shown.add_row(*row)
    Console().print(shown)


class Measured(NamedTuple):
    """Memory in GiB and seconds per step of training on rows of this many stations; None if
    training failed.
    """

    stations: int
    numbers: float
    tokens: float
    memory: float | None
    seconds: float | None

    def fits(self, options: argparse.Namespace) -> bool:
        """Return whether the row is within the limits."""
        if self.memory is None or self.seconds is None:
            return False
        return bool(self.memory <= options.limit and self.seconds <= options.seconds)


def lengths(
    store: Path, scheme: str, recompute: bool, cells: int, options: argparse.Namespace
) -> list[tuple[str, ...]]:
    """Return the rows of the table, the shortest sample first."""
    found: dict[int, Measured] = {}

    stations = min(options.stations, cells)
    for _ in range(2 + options.tries):
        found[stations] = measured(store, scheme, recompute, stations, options)
        print(scheme, recompute, *found[stations], file=sys.stderr)
        stations = min(estimated(found, options), cells)
        if stations in found:
            break
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


def estimated(found: dict[int, Measured], options: argparse.Namespace) -> int:
    """Estimate the number of stations that just stays within the limits, from the two longest rows.

    Return a number that was already measured if it is near enough to the limits, or if no longer
    row is possible.
    """
    last = found[max(found)]
    if last.memory is None or last.seconds is None:
        shorter = max((one for one in found if one < last.stations), default=0)
        return (shorter + last.stations) // 2
    if len(found) == 1:
        return 2 * last.stations
    near = NEAR * options.limit <= last.memory or NEAR * options.seconds <= last.seconds
    if near and last.fits(options):
        return last.stations
    before = found[max(one for one in found if one < last.stations)]
    assert before.memory is not None and before.seconds is not None
    ratio = last.stations / before.stations
    slope = (last.memory - before.memory) / (last.stations - before.stations)
    power = math.log(last.seconds / before.seconds, ratio)
    by_memory = last.stations + (AIM * options.limit - last.memory) / max(slope, 1e-6)
    by_time = last.stations * (AIM * options.seconds / last.seconds) ** (1 / max(power, 1))
    return int(min(by_memory, by_time, 4 * last.stations))


def measured(
    store: Path, scheme: str, recompute: bool, stations: int, options: argparse.Namespace
) -> Measured:
    """Generate and encode rows of this many stations, and train on them."""
    name = f"stations-{stations}"
    settings = ["--stations", f"{stations}..{stations}", "--days", "1..1", "--every", "1"]
    split = ["--rows", "40", "--split", "validation=0.1", "--name", name]
    numtok(store, "gen", "temperature", "--from", "field", *settings, *split)
    encoded = numtok(store, "encode", name, "--scheme", scheme)
    counts = encoded["counts"]
    sizes = stations, counts["numbers"] / counts["rows"], counts["tokens"] / counts["rows"]
    # Another seed, because recomputing does not change the model: the existing one would be reused.
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
