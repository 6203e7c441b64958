#!/usr/bin/env python
"""Measure how many true values the conformal 90% intervals of a model and of each baseline contain.

Each run assigns the rows of a file to splits (20% test, 15% calibration, 10% validation), trains
one model and evaluates it. Splits are random, one per run; with --time, there is one run, split in
the order of a column. Each run appends one line per method to a CSV. Runs that are already in the
CSV are skipped, so the same command resumes a stopped measurement.

    python pipelines/real-sets.py --out sets
    measure() { python pipelines/interval-coverage.py --out coverage.csv "$@"; }
    measure sets/films.csv --target Rating --drop imdbID --text
    measure sets/films.csv --target Rating --drop imdbID --text --time Released
    measure --format md
"""

import argparse
import csv
import math
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from scipy.stats import t

import numtok
from numtok.cli.output.printing import Format, print_table
from numtok.data.records.dates import date_format, dates_of
from numtok.errors import UsageError

SPLITS = {"test": 0.2, "calibration": 0.15, "validation": 0.1}
COLUMNS = ("set", "order", "seed", "method", "coverage", "width", "mae", "test")
MODEL = "nano,layers=2,width=64"


def moments(column: pl.Series) -> pl.Series:
    """Return a column of numbers or dates as values that can be ordered; missing ones are null.

    Raises UsageError if it has other values.
    """
    if column.dtype.is_numeric():
        return column
    texts = column.cast(pl.String).to_arrow().cast(pa.string())
    form = date_format(texts.drop_null())
    if form is None:
        raise UsageError(f"--time {column.name}: the column must have numbers or dates")
    return pl.Series(dates_of(texts, form))


def assign(frame: pl.DataFrame, time: str | None, rows: int | None, seed: int) -> pl.DataFrame:
    """Return the rows with a column ``split``: at random, or the latest rows as test rows.

    A random split uses at most ``rows`` rows, so that runs share fewer rows.

    A split by time has validation, calibration and test rows in this order, and omits rows without
    a time.
    """
    if time is None:
        order = np.random.default_rng(seed).permutation(len(frame))
        frame = frame[order[:rows].tolist()]
    else:
        frame = frame.with_columns(moments(frame[time]).alias("_moment"))
        frame = frame.drop_nulls("_moment").sort("_moment", maintain_order=True).drop("_moment")
    splits = np.full(len(frame), "train", dtype="<U11")
    end = len(frame)
    for name, fraction in SPLITS.items():
        start = end - round(fraction * len(frame))
        splits[start:end] = name
        end = start
    return frame.with_columns(pl.Series("split", splits.tolist()))


def measure(
    frame: pl.DataFrame, target: str, drop: tuple[str, ...], *, text: bool, steps: int, seed: int
) -> dict[str, Any]:
    """Train a head of five Gaussians on texts or on a table, and return the metrics per method."""
    folder = Path(tempfile.mkdtemp())
    try:
        path = str(folder / "rows.csv")
        frame.write_csv(path)
        if text:
            data = numtok.encode(path, scheme="xval", target=target, drop=drop, store=folder)
            model = numtok.train(
                data, preset=MODEL, head="mdn:5", steps=steps, batch=64, seed=seed, store=folder
            )
        else:
            data = numtok.table(path, target=target, drop=drop, store=folder)
            model = numtok.train(data, head="mdn:5", epochs=15, seed=seed, store=folder)
        report = numtok.eval(model, data, store=folder)
        return {"mdn:5": report.metrics, **report.report.baselines}
    finally:
        shutil.rmtree(folder)


def lines(name: str, order: str, seed: int, methods: dict[str, Any]) -> Iterator[list[object]]:
    """Yield one line per method that has conformal intervals."""
    for method, metrics in methods.items():
        if (covered := metrics.get("conformal-coverage")) is not None:
            yield [
                name, order, seed, method, covered.value,
                metrics["conformal-width"].value, metrics["mae"].value, covered.n,
            ]  # fmt: skip
    if (own := methods["mdn:5"].get("coverage")) is not None:
        yield [name, order, seed, "mdn:5, own quantiles", own.value, math.nan, math.nan, own.n]


def stored(path: Path) -> list[dict[str, str]]:
    """Return the lines of the CSV, or an empty list if it does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def summary(found: list[dict[str, str]]) -> Iterator[list[object]]:
    """Yield set, order, method, runs, mean coverage and half its 95% interval (Student's t)."""
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for line in found:
        groups[line["set"], line["order"], line["method"]].append(float(line["coverage"]))
    for (name, order, method), values in groups.items():
        n = len(values)
        half = float(t.ppf(0.975, n - 1)) * stdev(values) / math.sqrt(n) if n > 1 else None
        yield [name, order, method, n, round(mean(values), 4), half and round(half, 4)]


def main() -> None:
    """Measure the missing runs, or print a summary of the stored ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--target")
    parser.add_argument("--drop", default="", help="columns to leave out: A,B")
    parser.add_argument("--time", help="column that orders the rows")
    parser.add_argument("--text", action="store_true", help="train on rows as texts")
    parser.add_argument("--steps", type=int, default=300, help="training steps on texts")
    parser.add_argument("--rows", type=int, help="rows to draw in each run (default all)")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True, help="CSV of all runs")
    parser.add_argument("--format", type=Format, default=Format.TABLE)
    asked = parser.parse_args()
    if asked.file is None:
        head = ("set", "order", "method", "runs", "coverage", "+-")
        print_table("coverage", head, list(summary(stored(asked.out))), asked.format)
        return
    if asked.target is None:
        parser.error("missing --target")
    frame = pl.read_csv(asked.file, infer_schema_length=None)
    order = "time" if asked.time else "random"
    done = {(line["set"], line["order"], int(line["seed"])) for line in stored(asked.out)}
    for seed in range(1 if asked.time else asked.runs):
        if (asked.file.stem, order, seed) in done:
            continue
        methods = measure(
            assign(frame, asked.time, asked.rows, seed),
            asked.target,
            tuple(filter(None, asked.drop.split(","))),
            text=asked.text,
            steps=asked.steps,
            seed=seed,
        )
        fresh = not asked.out.exists()
        with asked.out.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([COLUMNS] if fresh else [])
            writer.writerows(lines(asked.file.stem, order, seed, methods))


if __name__ == "__main__":
    main()
