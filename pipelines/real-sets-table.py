#!/usr/bin/env python
"""Write the results of races on real sets as CSV: one line per finalist and baseline.

python pipelines/real-sets.py --out sets
numtok race sets/films.csv --target Rating --drop imdbID --minutes 6 --seeds 2 --json > films.json
python pipelines/real-sets-table.py films.json ... > docs/results/text-to-number.csv
python pipelines/real-sets-table.py films.json ... --format md
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numtok.cli.output.printing import Format, print_table

COLUMNS = (
    "set", "train", "test", "candidate", "is_model", "winner", "skill", "skill_low", "skill_high",
    "over_baseline", "over_low", "over_high", "mae", "mae_low", "mae_high", "seconds",
)  # fmt: skip


def rows(name: str, race: dict[str, Any]) -> Iterator[list[object]]:
    """Yield one row per entry of the leaderboard of a race."""
    board = race["leaderboard"]
    for place in board["places"]:
        [error] = place["errors"].values()
        figures = [place["skill"], place["over_baseline"], error]
        seconds = (place["costs"] or {}).get("train_seconds")
        yield [
            name,
            race["rows"][0],
            race["rows"][2],
            place["label"],
            place["is_model"],
            place["label"] == race["winner"],
            *(figure[end] for figure in figures for end in ("value", "low", "high")),
            seconds,
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("races", nargs="+", type=Path)
    parser.add_argument("--format", type=Format, default=Format.CSV)
    asked = parser.parse_args()
    found = [row for path in asked.races for row in rows(path.stem, json.loads(path.read_text()))]
    print_table("races on real sets", COLUMNS, found, asked.format)


if __name__ == "__main__":
    main()
