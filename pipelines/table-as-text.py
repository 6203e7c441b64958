"""A table as texts, a row each, whose target is asked for: table-as-text.py REF FILE.

``frequency 800, angle 0, chord 0.3048: noise 126.201``. Splits are those of the table's first fold,
every tenth row to learn from being for validation.
"""

import json
import sys
from pathlib import Path

import polars as pl

import numtok

EVERY = 10


def written(value: object) -> str:
    """As people write it: 800, not 800.0."""
    return str(value).removesuffix(".0")


def main(ref: str, file: str) -> None:
    table = numtok.load(ref)
    about = json.loads((table.path / "table.json").read_text())
    names = [one["name"] for one in about["features"]]
    target, split = about["target"], about["splits"][0]
    learnt = 0
    with Path(file).open("w") as out:
        for row in pl.read_parquet(table.path / "rows-*.parquet").iter_rows(named=True):
            told = ", ".join(f"{name} {written(row[name])}" for name in names)
            text = f"{told}: {target} {written(row[target])}"
            learnt += row[split] == "train"
            held_back = row[split] == "train" and learnt % EVERY == 0
            line = {
                "text": text,
                "split": "validation" if held_back else row[split],
                "targets": {target: [[len(text) - len(written(row[target])), len(text)]]},
            }
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
