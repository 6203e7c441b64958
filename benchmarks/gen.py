"""Rows per second of `numtok gen` on one core, from the first row to bytes on disk.

Each row of the first table is a task with the default splits, written into a fresh store by this
process, pinned to one core: sampling, evaluating and writing rows, sha256, fsync, publishing. Times
exclude start-up and compilation, because a few rows are generated first. `rows/s` is the median of
--repeat runs; `least` and `most` are the slowest and the fastest run.

The second table compares `gen orbits` with REBOUND's integrator: the same systems, built before,
and `integrate` for the same times, without reading or writing. Both alternate, and `ratio` is the
median over pairs of CPU times.

Needs Linux. Other cores may be busy, so repeat on a busy machine. Nothing is asserted.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console
from rich.table import Table

from numtok.data.tasks._nbody import simulation
from numtok.data.tasks.base import SPLITS, TASKS
from numtok.data.tasks.orbits import Orbits
from numtok.stages.gen import Config, run
from numtok.store.artifact import TIMING
from numtok.store.store import Store

ARITHMETIC = (
    "arithmetic,operands=2",
    "arithmetic,operands=3",
    "arithmetic,operands=4",
    "arithmetic,operands=4,decimals=2,low=-99.99,high=99.99",
    "arithmetic,kind=product,digits=5",
)
JUDGED = (
    "measurement",
    "comparison",
    "wordproblems",
    "wordproblems,form=generate,answers=10001..inf",
)
ORBITS = (
    "orbits",
    "orbits,planets=2..5,steps=public",
    "orbits,figures=0",
    "orbits,planets=2,points=15..25,span=6..12,figures=4",
)


def make(task: str, samples: int, split: str = SPLITS) -> tuple[float, int]:
    """Return the seconds and bytes of a run into a temporary store."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent / "data") as folder:
        config = Config(task, samples=samples, split=split, workers=1)
        artifact = run(config, Store(Path(folder)), lambda *progress: None).artifact
        assert artifact is not None
        timing = msgspec.json.decode((artifact.path / TIMING).read_bytes())
        return float(timing["seconds"]), artifact.manifest.bytes


def integrate(spec: str, samples: int) -> float:
    """Return the CPU seconds of the integrator for the rows of a train split."""
    task = TASKS.build(spec)
    assert isinstance(task, Orbits)
    systems = list(task.systems(0, "train", range(samples)))
    seconds = 0.0
    for first in range(0, samples, task.unit_rows):  # in blocks of the same size as in gen
        some = systems[first : first + task.unit_rows]
        pairs = [(simulation(system), system) for system in some]
        started = time.process_time()
        for made, system in pairs:
            for k in range(1, system.points):
                made.integrate(k * system.step)
        seconds += time.process_time() - started
    return seconds


def compare_orbits(samples: int, repeat: int) -> Table:
    """Return the second table."""
    columns = ("rows/s", "integrator alone", "ratio", "least", "most", "bytes a row")
    shown: Table = table(f"numtok gen orbits, {samples:,} rows, one core", ("task",), columns)
    for task in ORBITS:
        make(task, 100, "train=1")
        rows, alone = [], []
        for _ in range(repeat):
            alone.append(integrate(task, samples))
            started = time.process_time()
            size = make(task, samples, "train=1")[1]
            rows.append(time.process_time() - started)
        ratios = [a / b for a, b in zip(rows, alone, strict=True)]
        speeds = [f"{samples / median(seconds):,.0f}" for seconds in (rows, alone)]
        shares = [f"{ratio:.2f}" for ratio in (median(ratios), min(ratios), max(ratios))]
        shown.add_row(task, *speeds, *shares, f"{size / samples:.0f}")
    return shown


def main() -> None:
    """Measure with the given options and print the tables."""
    parser = argparse.ArgumentParser(
        description="Measure numtok gen on one core.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--samples", type=int, default=1_000_000, help="rows of each task")
    parser.add_argument("--orbits", type=int, default=2_000, help="rows of each task of orbits")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each task")
    options = parser.parse_args()
    (Path(__file__).parent / "data").mkdir(exist_ok=True)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    columns = ("rows/s", "least", "most", "MB/s", "bytes a row")
    shown = table(f"numtok gen, {options.samples:,} rows, one core", ("task",), columns)
    for task in (*ARITHMETIC, *JUDGED):
        make(task, 1000)
        seconds, sizes = zip(
            *(make(task, options.samples) for _ in range(options.repeat)), strict=True
        )
        taken, size = (median(seconds), max(seconds), min(seconds)), sizes[0]
        figures = [f"{options.samples / one:,.0f}" for one in taken]
        shown.add_row(
            task, *figures, f"{size / taken[0] / 1e6:.0f}", f"{size / options.samples:.0f}"
        )
    Console().print(shown)
    Console().print(compare_orbits(options.orbits, options.repeat))


if __name__ == "__main__":
    main()
