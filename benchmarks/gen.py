"""How many rows `numtok gen` makes a second on one core, from the first row to bytes on disk.

Each line of the table is a task in the default three splits, made into a fresh store by this
process, pinned to one core: drawing, evaluating and writing rows, sha256, fsync, publishing.
Start-up and compilation are not in it: a few rows are made before. `rows/s` is the median of
--repeat runs, `least` and `most` are the slowest and the fastest. Needs Linux; the other cores
are not kept free, so on a busy machine repeat. Nothing is asserted.
"""

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from numtok.artifact import TIMING
from numtok.stages.gen import Config, run
from numtok.store import Store

TASKS = (
    "arithmetic,operands=2",
    "arithmetic,operands=3",
    "arithmetic,operands=4",
    "arithmetic,operands=4,places=2,low=-99.99,high=99.99",
    "arithmetic,kind=product,digits=5",
)


def make(task: str, samples: int) -> tuple[float, int]:
    """Seconds and bytes of one run into a store that is then removed."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent / "data") as folder:
        config = Config(task, samples, workers=1)
        artifact = run(config, Store(Path(folder)), lambda *progress: None).artifact
        assert artifact is not None
        timing = msgspec.json.decode((artifact.path / TIMING).read_bytes())
        return float(timing["seconds"]), artifact.manifest.bytes


def main() -> None:
    """Measure what the options ask for and print the table."""
    parser = argparse.ArgumentParser(
        description="Measure numtok gen on one core.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--samples", type=int, default=1_000_000, help="rows of each task")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each task")
    options = parser.parse_args()
    (Path(__file__).parent / "data").mkdir(exist_ok=True)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = Table(title=f"numtok gen, {options.samples:,} rows, one core")
    table.add_column("task", overflow="fold")
    for heading in ("rows/s", "least", "most", "MB/s", "bytes a row"):
        table.add_column(heading, justify="right")
    for task in TASKS:
        make(task, 1000)
        seconds, sizes = zip(
            *(make(task, options.samples) for _ in range(options.repeat)), strict=True
        )
        speeds = [options.samples / median(seconds)]
        speeds += [options.samples / max(seconds), options.samples / min(seconds)]
        figures = [f"{speed:,.0f}" for speed in speeds]
        size = sizes[0]
        table.add_row(
            task, *figures, f"{size / median(seconds) / 1e6:.0f}", f"{size / options.samples:.0f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
