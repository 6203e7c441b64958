"""Time to find the fields of numbers, per 100,000 rows.

    python benchmarks/fields.py

There are three kinds of rows, without targets: *orbit*, JSON with about a hundred numbers; *prose*,
one of five sentences with two to six numbers; and *table*, lines of ten columns. Each kind is
encoded once, and half of the rows are the train split.

`finding` is the whole of `number_fields`: reading the texts of both splits from their shards, then
fields, means and medians. `reading` is only the first part. Values are CPU seconds of one process
per 100,000 rows, the best of --tries, and microseconds per number. `benchmarks/eval.py` has the
cost of an evaluation per number. Nothing is asserted.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _shared import best, table  # type: ignore[import-not-found]
from rich.console import Console

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.splits import read_split, read_texts
from numtok.evaluation.fields import number_fields
from numtok.evaluation.queries import queries_of
from numtok.evaluation.rows import Rows
from numtok.stages.encode import Config, run
from numtok.store.store import Store

SENTENCES = (
    "Pipe {} has a length of {} m and a flow of {} l.",
    "The tank holds {} m3, of which {} are left.",
    "At {} degrees the pump {} takes {} W, {} at most, for {} h and {} min.",
    "Valve {} opened {} times.",
    "From {} to {} the level rose by {} cm.",
)
TEST = "test"
Written = Callable[[np.random.Generator], str]


def orbit(random: np.random.Generator) -> str:
    planets = {
        f"planet{k}": {"m": round(float(random.random()), 3), "a": round(float(random.random()), 3)}
        for k in range(int(random.integers(2, 5)))
    }
    places = np.round(random.normal(size=(int(random.integers(20, 40)), 4)), 3).tolist()
    return json.dumps({"description": planets, "data": places})


def prose(random: np.random.Generator) -> str:
    told = SENTENCES[int(random.integers(len(SENTENCES)))]
    return told.format(*random.integers(1, 999, told.count("{}")).tolist())


def columns(random: np.random.Generator) -> str:
    return ",".join(f"{value:.2f}" for value in random.normal(size=10))


KINDS: dict[str, Written] = {"orbit": orbit, "prose": prose, "table": columns}


def lines(written: Written, rows: int) -> Iterator[str]:
    random = np.random.default_rng(0)
    for row in range(rows):
        split = (TRAIN, TEST)[row % 2]
        yield json.dumps({"id": row, "text": written(random), "split": split}) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--tries", type=int, default=3)
    asked = parser.parse_args()
    shown = table(
        "finding fields, CPU seconds per 100,000 rows",
        ["rows"],
        ["numbers a row", "fields", "reading", "finding", "us a number"],
    )
    with tempfile.TemporaryDirectory() as folder:
        for kind, written in KINDS.items():
            path = Path(folder) / f"{kind}.jsonl"
            path.write_text("".join(lines(written, asked.rows)))
            config = Config((str(path),), scheme="p1000", name=kind)
            artifact = run(config, Store(Path(folder) / "artifacts"), lambda *told: None).artifact
            assert artifact is not None
            test, train = (read_split(artifact, split) for split in (TEST, TRAIN))
            queries = queries_of(test, True)
            evaluated = Rows(artifact, TEST, test, np.arange(len(test)))
            found = number_fields(evaluated, queries, artifact, train)

            def reading(artifact=artifact, test=test, train=train) -> None:  # type: ignore[no-untyped-def]
                for split, samples in ((TRAIN, train), (TEST, test)):
                    for _ in read_texts(artifact, split, np.arange(len(samples))):
                        pass

            def finding(artifact=artifact, train=train, of=evaluated, asked=queries) -> None:  # type: ignore[no-untyped-def]
                number_fields(of, asked, artifact, train)

            numbers = len(test.numbers) + len(train.numbers)
            seconds = [best(work, asked.tries, time.process_time) for work in (reading, finding)]
            shown.add_row(
                kind,
                f"{numbers / asked.rows:.1f}",
                str(0 if found is None else len(set(found.names))),
                *(f"{one * 100_000 / asked.rows:.2f}" for one in seconds),
                f"{1e6 * seconds[1] / numbers:.2f}",
            )
    Console().print(shown)


if __name__ == "__main__":
    main()
