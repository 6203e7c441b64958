"""Estimated costs of many terabytes, from measurements on one machine with two cores.

    python benchmarks/extrapolate.py --terabytes 10 --workers 1000 --gpus 1000

Costs are those of ``_costs.tsv``, in seconds of one core. They are multiplied by the size, and work
that workers share is divided by their number. None of this was run. The table shows which cost is
the first limit; it does not promise that a thousand workers are a thousand times as fast.

Costs on GPUs are not measured. A training step is counted as six operations per parameter and
token. The fraction of ``--rate`` that it reaches is an assumption. The default is the fraction that
training reaches of a CPU's matrix products.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

UNIT = (64 << 20) / 1e9  # GB of input per shard of one split
TOKENS, NUMBERS = (
    0.185e9,
    0.0443e9,
)  # for p1000, per GB of orbit-like JSON (docs/results/performance.md)
COSTS = Path(__file__).with_name("_costs.tsv")
_OF_A_PARAMETER = 3 * 4  # bytes: the parameter and two moments
_OF_A_NUMBER = 8 + 4 + 4 + 4  # bytes: the number, its start, its length and its channel


def data_costs(gigabytes: float, workers: int) -> Iterator[tuple[str, ...]]:
    """Yield rows of work, workers, measured seconds, unit (GB or shard), and hours for all data."""
    with COSTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            count = gigabytes / UNIT if row["unit"] == "shard" else gigabytes
            share = workers if row["parts"] == "workers" else 1
            hours = count * float(row["seconds"]) / share / 3600
            yield row["what"], row["parts"], row["seconds"], row["unit"], f"{hours:.3g}"


def learning(gigabytes: float, asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the size of one training pass over all data, and its requirements."""
    tokens = TOKENS * gigabytes
    operations = 6 * asked.parameters * tokens
    hours = operations / (asked.gpus * asked.rate * asked.share) / 3600
    yield "tokens", f"{tokens:.3g}"
    yield "operations", f"{operations:.3g}"
    yield f"hours of {asked.gpus:,} GPUs, at {asked.share:.0%} of {asked.rate:.3g}", f"{hours:.3g}"
    mapped = 2 * tokens + _OF_A_NUMBER * NUMBERS * gigabytes
    yield "TB that each rank writes to a disk of its own and maps", f"{mapped / 1e12:.3g}"
    checkpoint = _OF_A_PARAMETER * asked.parameters
    yield "GB of a checkpoint, which the first rank writes", f"{checkpoint / 1e9:.3g}"


def main() -> None:
    """Print the tables for the given options."""
    parser = argparse.ArgumentParser(description="Extrapolate measured costs.")
    parser.add_argument("--terabytes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--parameters", type=float, default=1e9, help="of the model")
    parser.add_argument("--rate", type=float, default=1e15, help="FLOP/s of a GPU, in bfloat16")
    parser.add_argument("--share", type=float, default=0.4, help="of it that a step reaches")
    options = parser.parse_args()
    size = 1000 * options.terabytes
    title = f"extrapolated: {size:,.0f} GB, {size / UNIT:,.0f} shards, {options.workers:,} workers"
    shown = table(title, ("what", "done by"), ("measured, s", "a", "hours"))
    for row in data_costs(size, options.workers):
        shown.add_row(*row)
    learnt = table(f"one pass of {options.parameters:.3g} parameters over it", ("what",), ("",))
    for line in learning(size, options):
        learnt.add_row(*line)
    console = Console(width=100)
    console.print(shown)
    console.print(learnt)


if __name__ == "__main__":
    main()
