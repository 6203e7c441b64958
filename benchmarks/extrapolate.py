"""What so many terabytes would take, from what was measured on one machine of two cores.

    python benchmarks/extrapolate.py --terabytes 10 --workers 1000

Costs are those of ``_costs.tsv``, in seconds of one core; each is multiplied by the size, and what
workers share is divided by their number. Nothing of that was run: it says where the end comes
first, and is no promise that a thousand workers do a thousand times as much.
"""

import argparse
import csv
from pathlib import Path

from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

UNIT = (64 << 20) / 1e9  # GB of input in a shard, of one split
COSTS = Path(__file__).with_name("_costs.tsv")


def main() -> None:
    """Print the table of what the options ask for."""
    parser = argparse.ArgumentParser(description="Extrapolate measured costs.")
    parser.add_argument("--terabytes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1000)
    options = parser.parse_args()
    size = 1000 * options.terabytes
    shards = size / UNIT
    title = f"extrapolated: {size:,.0f} GB, {shards:,.0f} shards, {options.workers:,} workers"
    shown = table(title, ("what", "done by"), ("measured, s", "a", "hours"))
    with COSTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            count = shards if row["unit"] == "shard" else size
            share = options.workers if row["parts"] == "workers" else 1
            hours = count * float(row["seconds"]) / share / 3600
            shown.add_row(row["what"], row["parts"], row["seconds"], row["unit"], f"{hours:.3g}")
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
