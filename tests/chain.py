"""Run the stages as most tests do, and read the results back."""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from numtok.evaluation.report_files import read
from numtok.reports import PREDICTIONS_FILE, Report
from numtok.stages import encode, eval, gen, train
from numtok.store.artifact import TIMING, Artifact
from numtok.store.store import Store
from numtok.store.verification import verify

T = TypeVar("T")


def there(value: T | None) -> T:
    """Return the value, which must not be None."""
    assert value is not None
    return value


def quiet(*_: object) -> None:
    """Ignore progress."""


def jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """Write rows as JSON Lines."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes("".join(lines).encode())
    return path


def generated(store: Store, task: str, samples: int | None = None, **options: Any) -> Artifact:
    return there(gen.run(gen.Config(task, samples=samples, **options), store, quiet).artifact)


def encoded(store: Store, *inputs: object, **options: Any) -> Artifact:
    config = encode.Config(tuple(map(str, inputs)), **options)
    return there(encode.run(config, store, quiet).artifact)


def trained(store: Store, data: str, **options: Any) -> Artifact:
    return train.run(train.Config(data, **options), store, quiet).artifact


def evaluated(store: Store, model: str, data: str, **options: Any) -> Artifact:
    return eval.run(eval.Config(model, data, **options), store, quiet).artifact


def report_of(artifact: Artifact) -> Report:
    assert verify(artifact).problems == []
    return read(artifact).report


def other_notes(notes: Iterable[str]) -> list[str]:
    """Return the notes other than those on prediction intervals, which most small data lack."""
    return [note for note in notes if not note.startswith(("No prediction int", "90% int"))]


def predictions_of(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the rows of predictions.parquet."""
    path = artifact.path / PREDICTIONS_FILE
    found: list[dict[str, Any]] = pq.read_table(path, page_checksum_verification=True).to_pylist()
    return found


def timing_of(artifact: Artifact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact.path / TIMING).read_bytes())
    return found


def contents(artifact: Artifact) -> dict[str, bytes]:
    """Return the bytes of each listed file, which are the same in every run."""
    return {file.path: (artifact.path / file.path).read_bytes() for file in artifact.files()}


def every_file(artifact: Artifact) -> dict[str, bytes]:
    """Return the bytes of each file, listed or not, except for the timing."""
    return {
        str(path.relative_to(artifact.path)): path.read_bytes()
        for path in sorted(artifact.path.rglob("*"))
        if path.is_file() and path.name != TIMING
    }


@contextmanager
def standard_input(path: Path) -> Iterator[None]:
    """Read a file as standard input."""
    saved, given = os.dup(0), os.open(path, os.O_RDONLY)
    os.dup2(given, 0)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(given)


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def unpadded(text: str) -> list[str]:
    """Return the lines of a printed table with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]
