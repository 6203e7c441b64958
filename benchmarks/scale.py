"""Cost of `numtok encode` per gigabyte, at several sizes.

    python benchmarks/scale.py --megabytes 40,400,4000

The input is orbit-like JSON as in `encode.py`: a block of 40 MB with distinct numbers, repeated up
to each size. It is encoded by one worker and by one worker per core.

The table has:

- the wall time of the whole command;
- the peak memory of all its processes together (PSS, sampled five times per second);
- the number of shards and the size of the output;
- whether the shards are byte for byte those of one worker.

Below it is the cost model: start-up and seconds per gigabyte, from the smallest and the largest
size.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import encode as bench  # type: ignore[import-not-found]  # in the same folder
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

BLOCK = 40_000_000  # bytes of distinct rows
LOOKS = 0.2  # seconds between two samples of memory


@dataclass(frozen=True)
class Encoded:
    """One run: its size and workers, its measurements, and the list of shards it wrote."""

    megabytes: float
    workers: int
    run: bench.Run
    shards: frozenset[str]  # name, bytes and checksum of each shard, as JSON

    @property
    def bytes(self) -> int:
        """Bytes of all shards."""
        return sum(json.loads(line)["bytes"] for line in self.shards)


def write_input(path: Path, size: float) -> None:
    """Write rows without ids until the file has at least ``size`` bytes."""
    texts = bench.orbit_texts()
    lines: list[bytes] = []
    held = 0
    while held < min(BLOCK, size):
        lines.append(f'{{"text": "{next(texts)}"}}\n'.encode())
        held += len(lines[-1])
    with path.open("wb") as file:
        for line in cycle(lines):
            file.write(line)
            if file.tell() >= size:
                break
        file.flush()
        os.fsync(file.fileno())


def encoded(source: Path, scheme: str, cores: list[int]) -> Encoded:
    """Encode into a fresh store, and remove it."""
    store = bench.DATA / "scale-store"
    run = bench.encode(source, scheme, store, *cores, sampling_seconds=LOOKS)
    (listed,) = store.glob("encoded/*/*/files.jsonl")
    shards = frozenset(line for line in listed.open() if ".parquet" in line)
    shutil.rmtree(store)
    return Encoded(source.stat().st_size / 1e6, len(cores), run, shards)


def measured(sizes: list[float], scheme: str, cores: list[int]) -> Iterator[Encoded]:
    """Yield the runs of each size, with one worker and with one per core."""
    source = bench.DATA / "scale.jsonl"
    for size in sizes:
        write_input(source, size * 1e6)
        for count in sorted({1, len(cores)}):
            yield encoded(source, scheme, cores[:count])
    source.unlink()


def main() -> None:
    """Measure with the given options, and print the table and the cost model."""
    parser = argparse.ArgumentParser(description="Measure numtok encode at several sizes.")
    parser.add_argument("--megabytes", default="40,400,4000", help="sizes, with commas")
    parser.add_argument("--scheme", default="p1000")
    options = parser.parse_args()
    bench.DATA.mkdir(exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    bench.warm_up([options.scheme], ["orbit"], cores[-1])
    columns = ("MB", "workers", "seconds", "MB/s", "peak MiB", "shards", "MB out", "same")
    shown = table(f"numtok encode --scheme {options.scheme}", (), columns)
    by_workers: dict[int, list[Encoded]] = {}
    shards: dict[float, frozenset[str]] = {}
    for one in measured(
        [float(size) for size in options.megabytes.split(",")], options.scheme, cores
    ):
        by_workers.setdefault(one.workers, []).append(one)
        same = shards.setdefault(one.megabytes, one.shards) == one.shards
        shown.add_row(
            f"{one.megabytes:,.0f}",
            f"{one.workers}",
            f"{one.run.seconds:.2f}",
            f"{one.megabytes / one.run.seconds:.1f}",
            f"{one.run.peak / 2**20:.0f}",
            f"{len(one.shards)}",
            f"{one.bytes / 1e6:,.0f}",
            "yes" if same else "NO",
        )
        bench.notes.print(
            f"{one.megabytes:,.0f} MB, {one.workers} workers: {one.run.seconds:.2f} s"
        )
    console = Console()
    console.print(shown)
    for workers, runs in by_workers.items():
        low, high = runs[0], runs[-1]
        if high.megabytes > low.megabytes:
            slope = (high.run.seconds - low.run.seconds) / (high.megabytes - low.megabytes)
            start = low.run.seconds - slope * low.megabytes
            console.print(f"{workers} workers: {start:.2f} s + {1000 * slope:.2f} s a GB")


if __name__ == "__main__":
    main()
